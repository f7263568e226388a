"""The interview questions, as declarations."""
