"""Writes scenes as pictures: `python golden_models/shapes_detector/draw.py FOLDER [--count 200] [--seed 20261]`.

The default seed is the one that training never saw. Needs numpy and Pillow.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from shapes_detector import scenes


def main() -> None:
    from PIL import Image

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for index in range(options.count):
        image, _, _ = scenes.scene(options.seed, index)
        Image.fromarray(image).save(options.folder / f"scene_{index:04}.png")


if __name__ == "__main__":
    main()
