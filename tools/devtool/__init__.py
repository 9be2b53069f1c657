"""What `./dev` does; needs only Python, and imports nothing of the package."""
