"""The commands without the app: measured here, printed as the app shows them."""
