"""What models are fed: shapes of inputs, preprocessing, pictures, noise, recorded inputs."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import DETECTOR, load
from vexlint.config import Contract, Input, Profile
from vexlint.model.read import read
from vexlint.values import VexlintError
from vexlint.verify import inputs, preprocess, samples
from vexlint.verify.inputs import Inputs, Spec

RGB: dict[str, Any] = {"colour": "RGB", "layout": "NCHW", "scale": 255}
NET = """<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (float[1,3,8,8] y) {{ y = Relu(x) }}"""


def picture_inputs(*shape: int, dtype: str = "float32") -> Inputs:
    return Inputs((Spec("images", dtype, shape),), batched=True)


def recipe(*shape: int, dtype: str = "float32", **settings: Any) -> preprocess.Recipe:
    return preprocess.recipe(Spec("images", dtype, shape), settings, "vexlint.toml")


def filled(made: preprocess.Recipe, picture: Any) -> Any:
    size = (made.height, made.width)
    room = np.zeros((made.channels, *size) if made.layout == "NCHW" else (*size, made.channels), made.dtype)
    preprocess.fill(made, picture, room)
    return room


def random_picture(height: int, width: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def ends(values: Any) -> list[float]:
    return [float(values.min()), float(values.max())]


class TestInputs:
    def test_fixed_sizes_stand(self) -> None:
        found = inputs.resolve(read(DETECTOR / "batch4.onnx"), Contract(inputs={"images": Input((1, 3, 9, 9))}), {})
        assert found == Inputs((Spec("images", "float32", (4, 3, 320, 320)),), batched=True)
        assert (found.batch, found.unit(found.specs[0])) == (4, (3, 320, 320))

    @pytest.mark.parametrize(
        ("contract", "given"),
        [
            (Contract(), {"images": (2, 3, 64, 96)}),
            (Contract(inputs={"images": Input((2, 3, 64, 96))}), {}),
            (Contract(inputs={"images": Input(("batch", 3, 64, 96))}), {"images": (2, 3, 64, 96)}),
            (Contract(profile={"images": Profile((1, 3, 32, 32), (2, 3, 64, 96), (4, 3, 640, 640))}), {}),
        ],
    )
    def test_open_axes_take_what_is_said(self, contract: Contract, given: dict[str, Any]) -> None:
        found = inputs.resolve(read(DETECTOR / "dynamic.onnx"), contract, given)
        assert found.specs[0].shape == (2, 3, 64, 96)

    def test_an_open_axis_is_named_with_the_option_that_fixes_it(self) -> None:
        contract = Contract(inputs={"images": Input((1, 3, "height", 320))})
        wanted = (
            r"dynamic.onnx: input images axis 2 \(height\) has no fixed size: say it with --shape images=1x3x320x320"
        )
        with pytest.raises(VexlintError, match=wanted):
            inputs.resolve(read(DETECTOR / "dynamic.onnx"), contract, {})

    def test_a_shape_that_contradicts_the_file_is_an_error(self) -> None:
        with pytest.raises(VexlintError, match="--shape sets axis 0 of input images to 2, the file fixes it to 1"):
            inputs.resolve(read(DETECTOR / "clean.onnx"), Contract(), {"images": (2, 3, 320, 320)})
        with pytest.raises(VexlintError, match=r"input images is \[1,3,320,320\], but --shape has 2 axes"):
            inputs.resolve(read(DETECTOR / "clean.onnx"), Contract(), {"images": (3, 320)})

    def test_several_inputs_are_one_sample(self, tmp_path: Path) -> None:
        model = load(NET.format(inputs="float[1,3,8,8] x, int64[2] size"), tmp_path)
        found = inputs.resolve(model, Contract(), {})
        assert (found.batch, found.unit(found.specs[0])) == (1, (1, 3, 8, 8))
        with pytest.raises(VexlintError, match="input size is int64"):
            samples.noise(found, Contract(), 1, 0, "model.onnx")

    def test_inputs_of_two_models_are_paired_by_name_or_place(self) -> None:
        one, other = picture_inputs(1, 3, 8, 8), picture_inputs(4, 3, 8, 8, dtype="float16")
        assert inputs.matched(one, other, "both") == [(one.specs[0], other.specs[0])]
        renamed = Inputs((Spec("x", "float32", (1, 3, 8, 8)),), batched=True)
        assert inputs.matched(one, renamed, "both")[0][1].name == "x"
        with pytest.raises(VexlintError, match=r"float32 \[1, 3, 8, 8\] in the one and float32 \[1, 3, 8, 9\]"):
            inputs.matched(one, picture_inputs(1, 3, 8, 9), "both")

    @pytest.mark.parametrize("text", ["images", "images=", "=1x3", "images=1x0x3", "images=1,3"])
    def test_shapes_are_written_in_one_way(self, text: str) -> None:
        with pytest.raises(VexlintError, match="write it as NAME=1x3x320x320"):
            inputs.parse_shapes([text])

    def test_shapes_are_read(self) -> None:
        assert inputs.parse_shapes(["a=1x3X4", "b:0=7"]) == {"a": (1, 3, 4), "b:0": (7,)}


class TestPreprocessing:
    def test_a_picture_of_the_right_size_is_only_scaled(self) -> None:
        picture = random_picture(4, 6)
        found = filled(recipe(1, 3, 4, 6, **RGB), picture)
        assert np.array_equal(found, picture.transpose(2, 0, 1).astype(np.float32) / np.float32(255))

    def test_mean_and_deviation_by_hand(self) -> None:
        picture = np.full((1, 1, 3), [51, 102, 204], np.uint8)
        found = filled(recipe(1, 3, 1, 1, mean=[0.1, 0.2, 0.3], std=[0.5, 0.25, 2]), picture)
        assert found.ravel().tolist() == pytest.approx([(0.2 - 0.1) / 0.5, (0.4 - 0.2) / 0.25, (0.8 - 0.3) / 2])

    def test_channels_go_into_the_order_and_place_that_the_contract_says(self) -> None:
        picture = np.full((1, 1, 3), [10, 20, 30], np.uint8)
        plain: dict[str, Any] = {"scale": 1}
        assert filled(recipe(1, 3, 1, 1, colour="BGR", **plain), picture).ravel().tolist() == [30, 20, 10]
        assert filled(recipe(1, 1, 1, 3, layout="NHWC", **plain), picture).tolist() == [[[10, 20, 30]]]
        assert filled(recipe(1, 1, 1, 1, colour="GRAY", **plain), picture).ravel().tolist() == [18]

    @pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
    def test_other_element_types(self, dtype: str) -> None:
        picture = random_picture(2, 2)
        found = filled(recipe(1, 3, 2, 2, dtype=dtype, scale=1), picture)
        assert found.dtype == dtype
        assert np.array_equal(found, picture.transpose(2, 0, 1))

    def test_letterbox_keeps_the_ratio_and_fills_with_the_pad(self) -> None:
        picture = np.full((10, 20, 3), 200, np.uint8)
        found = filled(recipe(1, 3, 8, 8, fit="letterbox", pad=7, scale=1), picture)[0]
        assert found[:2].tolist() == found[6:].tolist() == [[7] * 8] * 2
        assert found[2:6].tolist() == [[200] * 8] * 4

    def test_crop_takes_the_middle(self) -> None:
        picture = np.repeat(np.arange(16, dtype=np.uint8)[None, :, None] * 10, 8, 0).repeat(3, 2)
        found = filled(recipe(1, 3, 8, 8, fit="crop", scale=1), picture)[0]
        assert found[0].tolist() == [40, 50, 60, 70, 80, 90, 100, 110]

    def test_stretch_ignores_the_ratio(self) -> None:
        assert filled(recipe(1, 3, 8, 8, fit="stretch", scale=1), np.full((2, 9, 3), 5, np.uint8)).min() == 5

    def test_linear_by_hand(self) -> None:
        row = np.array([[[0], [100]]], np.uint8)
        assert preprocess.resize(row, 1, 4, "linear").ravel().tolist() == [0, 25, 75, 100]

    def test_nearest_by_hand(self) -> None:
        row = np.arange(4, dtype=np.uint8)[None, :, None]
        assert preprocess.resize(row, 1, 2, "nearest").ravel().tolist() == [0, 2]
        assert preprocess.resize(row, 2, 6, "nearest")[1].ravel().tolist() == [0, 0, 1, 2, 2, 3]

    def test_area_by_hand(self) -> None:
        row = np.array([[[0], [30], [90]]], np.uint8)
        assert preprocess.resize(row, 1, 2, "area").ravel().tolist() == [10, 70]

    @pytest.mark.parametrize(("interpolation", "filter_name"), [("linear", "BILINEAR"), ("area", "BOX")])
    def test_resampling_is_pillows(self, interpolation: str, filter_name: str) -> None:
        """Where both mean the same: linear when it enlarges (Pillow smooths when it shrinks), area at whole ratios."""
        image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'vexlint[images]'")
        picture = random_picture(60, 84)
        height, width = (150, 97) if interpolation == "linear" else (20, 28)
        theirs = np.asarray(image.fromarray(picture).resize((width, height), image.Resampling[filter_name]))
        ours = preprocess.resize(picture, height, width, interpolation)
        assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 1  # Pillow calculates with whole numbers

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"colour": "GRAY"}, "has 3 channels as NCHW, which is not GRAY"),
            ({"layout": "NHWC"}, "has 8 channels as NHWC, which is not RGB"),
            ({"mean": [0, 0]}, r"preprocessing.mean should be one number a channel \(3\)"),
            ({"scale": "255"}, "preprocessing.scale should be a number, not '255'"),
            ({"std": [0, 1, 1]}, "scale and std above 0"),
            ({"pad": 300}, "pad in 0..255"),
        ],
    )
    def test_a_setting_that_cannot_be_is_named(self, settings: dict[str, Any], said: str) -> None:
        with pytest.raises(VexlintError, match=said):
            recipe(1, 3, 8, 8, **settings)

    def test_a_whole_number_input_takes_pixels_as_they_are_or_not_at_all(self) -> None:
        with pytest.raises(VexlintError, match="input images is uint8"):
            recipe(1, 3, 8, 8, dtype="uint8", scale=255)


class TestPictures:
    def folder(self, tmp_path: Path, count: int = 3) -> Path:
        for i in range(count):
            np.save(tmp_path / f"{i}.npy", np.full((8, 8, 3), i, np.uint8))
        (tmp_path / "labels.txt").write_text("no picture", "utf-8")
        return tmp_path

    def pictures(self, folder: Path, made: Inputs | None = None) -> samples.Pictures:
        return samples.pictures(folder, made or picture_inputs(1, 3, 8, 8), Contract(preprocessing=RGB), "model.onnx")

    def test_a_folder_in_the_order_of_names(self, tmp_path: Path) -> None:
        found = self.pictures(self.folder(tmp_path))
        assert [found.label(i) for i in range(len(found))] == ["0.npy", "1.npy", "2.npy"]
        room = {"images": np.empty((3, 8, 8), np.float32)}
        found.fill(2, room)
        assert room["images"].max() == room["images"].min() == np.float32(2 / 255)

    @pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "bmp"])
    def test_formats(self, tmp_path: Path, suffix: str) -> None:
        image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'vexlint[images]'")
        image.new("RGBA", (8, 8), (200, 100, 50, 255)).convert("RGB").save(tmp_path / f"a.{suffix}")
        found = samples.read_picture(tmp_path / f"a.{suffix}")
        assert (found.shape, found.dtype) == ((8, 8, 3), np.uint8)
        assert np.abs(found.astype(int) - [200, 100, 50]).max() < 6

    def test_grey_arrays_become_colour(self, tmp_path: Path) -> None:
        np.save(tmp_path / "grey.npy", np.eye(4, dtype=np.uint8))
        assert samples.read_picture(tmp_path / "grey.npy").shape == (4, 4, 3)

    @pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.npy"])
    def test_a_damaged_file_is_named(self, tmp_path: Path, name: str) -> None:
        if name != "a.npy":
            pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'vexlint[images]'")
        (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
        with pytest.raises(VexlintError, match=f"{name}: not an image that can be read"):
            samples.read_picture(tmp_path / name)

    def test_a_cut_off_file_is_named(self, tmp_path: Path) -> None:
        image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'vexlint[images]'")
        image.fromarray(random_picture(64, 64)).save(tmp_path / "a.png")
        whole = (tmp_path / "a.png").read_bytes()
        (tmp_path / "a.png").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(VexlintError, match=r"a\.png: not an image that can be read"):
            samples.read_picture(tmp_path / "a.png")

    def test_an_array_that_is_no_picture_is_named(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.zeros((4, 4, 3)))
        with pytest.raises(VexlintError, match=r"a.npy: holds float64 \[4, 4, 3\], not uint8"):
            samples.read_picture(tmp_path / "a.npy")

    def test_without_pillow_the_line_that_installs_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = builtins.__import__

        def without(name: str, *rest: Any) -> Any:
            if name.startswith("PIL"):
                raise ImportError(name)
            return whole(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        (tmp_path / "a.png").touch()
        with pytest.raises(VexlintError, match=r"pip install 'vexlint\[images\]'"):
            samples.read_picture(tmp_path / "a.png")

    def test_a_folder_without_pictures_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / ".hidden.npy").touch()
        with pytest.raises(VexlintError, match="no images in this folder"):
            self.pictures(tmp_path)
        with pytest.raises(VexlintError, match="no such folder of images"):
            self.pictures(tmp_path / "elsewhere")

    def test_without_preprocessing_nobody_guesses(self, tmp_path: Path) -> None:
        with pytest.raises(VexlintError, match="nothing says how a picture becomes the input"):
            samples.pictures(self.folder(tmp_path), picture_inputs(1, 3, 8, 8), Contract(), "model.onnx")

    def test_other_inputs_need_recorded_ones(self, tmp_path: Path) -> None:
        several = Inputs((Spec("image", "float32", (1, 3, 8, 8)), Spec("scale", "float32", (1, 2))), batched=False)
        with pytest.raises(VexlintError, match=r"it has image .*, scale \[1, 2\]: use --inputs"):
            self.pictures(self.folder(tmp_path), several)


class TestNoise:
    def values(self, seed: int, index: int, **preprocessing: Any) -> Any:
        contract = Contract(preprocessing=preprocessing or None)
        made = samples.noise(picture_inputs(1, 3, 8, 8), contract, 4, seed, "model.onnx")
        room = {"images": np.empty((3, 8, 8), np.float32)}
        made.fill(index, room)
        return room["images"]

    def test_depends_on_the_seed_and_the_number_only(self) -> None:
        assert np.array_equal(self.values(1, 2), self.values(1, 2))
        assert not np.array_equal(self.values(1, 2), self.values(1, 3))
        assert not np.array_equal(self.values(1, 2), self.values(2, 2))

    def test_lies_in_the_range_of_the_preprocessing(self) -> None:
        assert ends(self.values(0, 0)) == pytest.approx([0, 1], abs=0.05)
        assert ends(self.values(0, 0, scale=1)) == pytest.approx([0, 255], abs=12)
        assert ends(self.values(0, 0, mean=[0.5] * 3, std=[0.5] * 3)) == pytest.approx([-1, 1], abs=0.1)

    def test_bytes(self) -> None:
        made = samples.noise(picture_inputs(1, 3, 8, 8, dtype="uint8"), Contract(), 1, 0, "model.onnx")
        room = {"images": np.empty((3, 8, 8), np.uint8)}
        made.fill(0, room)
        assert room["images"].max() > 230

    @pytest.mark.parametrize(("count", "seed"), [(0, 0), (1, -1)])
    def test_numbers_that_mean_nothing(self, count: int, seed: int) -> None:
        with pytest.raises(VexlintError, match="--samples should be 1 or more"):
            samples.noise(picture_inputs(1, 3, 8, 8), Contract(), count, seed, "model.onnx")


class TestRecordedInputs:
    def test_are_taken_one_by_one(self) -> None:
        arrays = {"images": np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 2, 2)}
        made = samples.recorded(arrays, picture_inputs(1, 3, 2, 2), "in.npz")
        room = {"images": np.empty((3, 2, 2), np.float32)}
        made.fill(1, room)
        assert (len(made), room["images"].ravel().tolist()) == (2, list(range(12, 24)))

    @pytest.mark.parametrize(
        ("arrays", "said"),
        [
            ({}, "no input images in it, only nothing"),
            ({"images": np.zeros((2, 3, 9, 9))}, r"images is \[2, 3, 9, 9\]; wanted are samples of \[3, 8, 8\]"),
            ({"images": np.zeros((0, 3, 8, 8))}, "1 or more, but images has 0"),
        ],
    )
    def test_what_does_not_fit_is_named(self, arrays: dict[str, Any], said: str) -> None:
        with pytest.raises(VexlintError, match=said):
            samples.recorded(arrays, picture_inputs(1, 3, 8, 8), "in.npz")
