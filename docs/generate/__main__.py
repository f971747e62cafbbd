# SPDX-License-Identifier: MIT
"""Write what is made from the code: `python -m docs.generate`, or `make docs`.

docs/settings.md, docs/metrics.md, docs/ensemble-options.md, and the man pages in
man/man1.
"""

from __future__ import annotations

from docs.generate.files import TOP, generated_files

for path, text in generated_files().items():
    (TOP / path).parent.mkdir(parents=True, exist_ok=True)
    (TOP / path).write_text(text, encoding="utf-8")
kept = set(generated_files())
for old in (TOP / "man/man1").glob("*.1"):
    if str(old.relative_to(TOP)) not in kept:
        old.unlink()
