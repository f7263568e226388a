"""Pure views: a result in, Rich renderables or lines out. No Textual."""
