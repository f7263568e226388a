"""What is known of types of models and of the keys of their configurations."""
