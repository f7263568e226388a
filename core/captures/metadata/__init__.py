"""What the metadata of captures says: of a file, and of each of its layers."""
