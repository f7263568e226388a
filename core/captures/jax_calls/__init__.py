"""Record the attention of JAX programs: where a call stands, what it was given, and when it runs."""
