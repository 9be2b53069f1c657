"""Plots of a report as SVG, drawn when the page is written: they need no script."""
