"""Find the bug: captures made on the spot, each with one defect or none."""
