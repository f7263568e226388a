"""python -m attn_tui.tui"""

from .cli import program

if __name__ == "__main__":
    program()
