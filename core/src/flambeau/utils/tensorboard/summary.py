"""What is written for TensorBoard, as messages of the package tensorboard."""

from __future__ import annotations

import bisect
import importlib
import io
import wave
from collections.abc import Mapping, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor

_proto = importlib.import_module("tensorboard.compat.proto.summary_pb2")
_tensors = importlib.import_module("tensorboard.compat.proto.tensor_pb2")
_shapes = importlib.import_module("tensorboard.compat.proto.tensor_shape_pb2")
Summary, Metadata = _proto.Summary, _proto.SummaryMetadata


def as_tensor(value: object) -> Tensor:
    """A number, an array or a tensor, in memory, without a history."""
    return fb.as_tensor(value).detach().cpu()


def _shaped(sizes: Sequence[int]) -> Any:
    return _shapes.TensorShapeProto(dim=[_shapes.TensorShapeProto.Dim(size=n) for n in sizes])


def of_plugin(tag: str, plugin: str, content: bytes, tensor: object = None) -> Any:
    """A summary that one of TensorBoard's plugins shows."""
    data = Metadata.PluginData(plugin_name=plugin, content=content)
    value = Summary.Value(tag=tag, metadata=Metadata(plugin_data=data), tensor=tensor)
    return Summary(value=[value])


def scalar(tag: str, value: object, new_style: bool = False, double_precision: bool = False) -> Any:
    """One number."""
    # Python's floats are float64, whatever the default dtype.
    number = value if isinstance(value, (int, float)) else as_tensor(value).squeeze()
    if isinstance(number, Tensor) and number.dim():
        raise AssertionError(f"Tensor should contain one element, not a shape of {number.shape}")
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=float(number))])
    kind = "double" if double_precision else "float"
    tensor = _tensors.TensorProto(dtype=f"DT_{kind.upper()}", **{f"{kind}_val": [float(number)]})
    return of_plugin(tag, "scalars", b"", tensor)


def _default_edges() -> list[float]:
    up, edge = [], 1e-12
    while edge < 1e20:
        up.append(edge)
        edge *= 1.1
    return [*(-e for e in reversed(up)), 0.0, *up]


def histogram(
    tag: str, values: object, bins: str | int | Sequence[float] | Tensor, max_bins: int | None
) -> Any:
    """Counts of values between edges.

    Raises:
        ValueError: there are no values.
    """
    flat = as_tensor(values).double().flatten()
    if flat.numel() == 0:
        raise ValueError("The input has no element.")
    if isinstance(bins, str) and bins == "tensorflow":
        limits = _default_edges()
    elif isinstance(bins, (str, int)):
        numpy = importlib.import_module("numpy")
        limits = numpy.histogram_bin_edges(flat.numpy(), bins).tolist()
    else:
        limits = as_tensor(bins).double().tolist()
    counts = [0] * (len(limits) - 1)
    for x in flat.tolist():
        place = min(bisect.bisect_right(limits, x) - 1, len(counts) - (x == limits[-1]))
        if 0 <= place < len(counts):
            counts[place] += 1
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = [sum(counts[i : i + step]) for i in range(0, len(counts), step)]
        limits = [*limits[:-1:step], limits[-1]]
    there = [i for i, count in enumerate(counts) if count] or [0]
    first, last = there[0], there[-1] + 1
    # Only right edges are written: an empty bin says where the first begins.
    counts = counts[first - 1 : last] if first else [0, *counts[:last]]
    message = _proto.HistogramProto(
        min=float(flat.min()),
        max=float(flat.max()),
        num=flat.numel(),
        sum=float(flat.sum()),
        sum_squares=float(flat.dot(flat)),
        bucket_limit=limits[first : last + 1],
        bucket=counts,
    )
    return Summary(value=[Summary.Value(tag=tag, histo=message)])


def _as_height_width_channels(picture: Tensor, order: str) -> Tensor:
    order = order.upper()
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shorthand twice: {order}")
    if len(order) != picture.dim():
        raise AssertionError(f"size of input tensor and input format are different: {order}")
    if len(order) == 4:  # many pictures as a grid
        many = picture.permute([order.index(each) for each in "NCHW"])
        count, channels, height, width = many.shape
        if channels == 1:
            many = many.expand(-1, 3, -1, -1)
        across = min(count, 8)
        down = -(-count // across)
        grid = many.new_zeros(3, height * down, width * across)
        for place, each in enumerate(many):
            y, x = divmod(place, across)
            grid[:, y * height : (y + 1) * height, x * width : (x + 1) * width] = each
        return grid.permute(1, 2, 0)
    if len(order) == 3:
        found = picture.permute([order.index(each) for each in "HWC"])
        return found.expand(-1, -1, 3) if found.shape[2] == 1 else found
    return picture.permute([order.index(each) for each in "HW"])[..., None].expand(-1, -1, 3)


def image(tag: str, picture: object, dataformats: str, rescale: float = 1) -> Any:
    """A picture as a PNG: bytes as they are, other numbers times 255; many as a grid."""
    pixels = as_tensor(picture)
    scale = 1 if pixels.dtype is fb.uint8 else 255
    pixels = (_as_height_width_channels(pixels, dataformats).float() * scale).clamp(0, 255)
    height, width, channels = pixels.shape
    Image = importlib.import_module("PIL.Image")
    drawn = Image.fromarray(pixels.to(fb.uint8).contiguous().numpy())
    size = int(width * rescale), int(height * rescale)
    file = io.BytesIO()
    drawn.resize(size, Image.Resampling.LANCZOS).save(file, format="PNG")
    message = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue()
    )
    return Summary(value=[Summary.Value(tag=tag, image=message)])


def audio(tag: str, sound: object, sample_rate: int) -> Any:
    """A sound of one channel, between -1 and 1."""
    samples = as_tensor(sound).double().squeeze()
    if samples.dim() != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    whole = (samples.clamp(-1, 1) * 32767).to(fb.int16)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes(whole.numpy().astype("<i2").tobytes())
    message = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=message)])


def text(tag: str, words: str) -> Any:
    """A text."""
    plugin = importlib.import_module("tensorboard.plugins.text.plugin_data_pb2")
    tensor = _tensors.TensorProto(
        dtype="DT_STRING", string_val=[words.encode()], tensor_shape=_shaped([1])
    )
    content = plugin.TextPluginData(version=0).SerializeToString()
    return of_plugin(f"{tag}/text_summary", "text", content, tensor)


def pr_curve(tag: str, labels: object, predictions: object, count: int, weights: object) -> Any:
    """Precision and recall over thresholds between 0 and 1."""
    count = min(count, 127)
    true = as_tensor(labels).double().flatten()
    heavy = fb.ones_like(true) if weights is None else as_tensor(weights).double().flatten()
    place = (as_tensor(predictions).flatten() * (count - 1)).floor().long()
    hits = fb.zeros(count, dtype=fb.float64).index_add(0, place, true * heavy)
    misses = fb.zeros(count, dtype=fb.float64).index_add(0, place, (1 - true) * heavy)
    tp, fp = (each.flip(0).cumsum(0).flip(0) for each in (hits, misses))
    tn, fn = fp[0] - fp, tp[0] - tp
    rows = [tp, fp, tn, fn, tp / (tp + fp).clamp(min=1e-7), tp / (tp + fn).clamp(min=1e-7)]
    plugin = importlib.import_module("tensorboard.plugins.pr_curve.plugin_data_pb2")
    tensor = _tensors.TensorProto(
        dtype="DT_FLOAT",
        float_val=fb.stack(rows).flatten().tolist(),
        tensor_shape=_shaped([6, count]),
    )
    content = plugin.PrCurvePluginData(version=0, num_thresholds=count).SerializeToString()
    return of_plugin(tag, "pr_curves", content, tensor)


def hparams(
    hparam_dict: Mapping[str, Any],
    metric_dict: Mapping[str, object],
    hparam_domain_discrete: object = None,
) -> tuple[Any, Any, Any]:
    """Settings of a run and the names of its results: the experiment, its start, its end.

    Raises:
        TypeError: one of the two is no dictionary.
        ValueError: a setting is no number, string or bool.
    """
    api = importlib.import_module("tensorboard.plugins.hparams.api_pb2")
    facts = importlib.import_module("tensorboard.plugins.hparams.metadata")
    data = importlib.import_module("tensorboard.plugins.hparams.plugin_data_pb2")
    for name, each in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(each, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    start, infos = data.SessionStartInfo(), []
    for key, setting in hparam_dict.items():
        if setting is None:
            continue
        value = setting.item() if isinstance(setting, Tensor) else setting
        if isinstance(value, (int, float)):
            start.hparams[key].number_value = value
            kind = "FLOAT64"
        elif isinstance(value, str):
            start.hparams[key].string_value = value
            kind = "STRING"
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        infos.append(api.HParamInfo(name=key, type=api.DataType.Value(f"DATA_TYPE_{kind}")))
    named = [api.MetricInfo(name=api.MetricName(tag=name)) for name in metric_dict]
    experiment = api.Experiment(hparam_infos=infos, metric_infos=named)
    end = data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    version = facts.PLUGIN_DATA_VERSION

    def told(tag: str, **part: object) -> Any:
        content = data.HParamsPluginData(version=version, **part).SerializeToString()
        return of_plugin(tag, facts.PLUGIN_NAME, content)

    return (
        told(facts.EXPERIMENT_TAG, experiment=experiment),
        told(facts.SESSION_START_INFO_TAG, session_start_info=start),
        told(facts.SESSION_END_INFO_TAG, session_end_info=end),
    )


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Any:
    """How charts of several numbers are laid out."""
    kinds = importlib.import_module("tensorboard.plugins.custom_scalar.layout_pb2")
    categories = []
    for title, charts in layout.items():
        made = []
        for name, (kind, tags) in charts.items():
            if kind == "Margin":
                value, lower, upper = tags
                series = kinds.MarginChartContent.Series(value=value, lower=lower, upper=upper)
                made.append(
                    kinds.Chart(title=name, margin=kinds.MarginChartContent(series=[series]))
                )
            else:
                lines = kinds.MultilineChartContent(tag=tags)
                made.append(kinds.Chart(title=name, multiline=lines))
        categories.append(kinds.Category(title=title, chart=made))
    tensor = _tensors.TensorProto(
        dtype="DT_STRING",
        string_val=[kinds.Layout(category=categories).SerializeToString()],
        tensor_shape=_shaped([]),
    )
    return of_plugin("custom_scalars__config__", "custom_scalars", b"", tensor)
