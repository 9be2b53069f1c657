"""What the machine allows: a probe of memory and arithmetic, and how near to it a figure is."""
