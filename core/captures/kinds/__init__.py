"""The file formats of captures; `catalogue` lists them."""
