"""Faults that are planted into a good callable, to see what a suite notices."""
