#!/usr/bin/env python3
"""Reports the longest functions and files of our C code and refuses what is past the limits (CONTRIBUTING.md): functions 80 lines, files 500."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_FUNCTION, MAX_FILE = 80, 500


def functions(path):
    start = None
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start:
            if not line.startswith("};"):
                yield number - start - 1, f"{path.relative_to(ROOT)}:{start}"
            start = None


def main():
    paths = [p for f in ("common", "services") for p in sorted((ROOT / f).rglob("*.[ch]")) if "node_modules" not in p.parts]
    funcs = sorted((f for p in paths if p.suffix == ".c" for f in functions(p)), reverse=True)
    files = sorted(((len(p.read_text().splitlines()), str(p.relative_to(ROOT))) for p in paths), reverse=True)
    sizes = sorted(n for n, _ in funcs)
    print(f"functions: {len(sizes)}, median {sizes[len(sizes) // 2]}, p90 {sizes[len(sizes) * 9 // 10]}, longest {funcs[0][0]} ({funcs[0][1]})")
    print(f"files: {len(files)}, longest {files[0][0]} ({files[0][1]}), lines {sum(n for n, _ in files)}")
    bad = [f"{place}: function of {n} lines, at most {MAX_FUNCTION}" for n, place in funcs if n > MAX_FUNCTION]
    bad += [f"{place}: {n} lines, at most {MAX_FILE}" for n, place in files if n > MAX_FILE]
    print("\n".join(bad) if bad else "sizes: within the limits")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
