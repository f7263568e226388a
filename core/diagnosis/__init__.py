"""Which scale was really used: evidence, estimate, hypotheses, verdict; replaying rules; comparing captures."""
