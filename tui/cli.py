from __future__ import annotations


def main() -> int:
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("TEXTUAL_FPS", "120")
    from ..core.parameters import Parameters
    from .app import AttnApp

    app = AttnApp(Parameters())
    app.run()
    return app.return_code or 0
