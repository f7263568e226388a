"""python -m attn_tui"""

from attn_tui.tui.cli.main import program

if __name__ == "__main__":
    program()
