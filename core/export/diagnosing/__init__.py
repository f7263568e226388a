"""Export what is found out about captured heads: verdicts, differences, findings, replayed rules."""
