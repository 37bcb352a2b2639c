"""The writer of event files, by way of the package tensorboard, with PyTorch's methods."""

from __future__ import annotations

import importlib
import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, SupportsInt

from flambeau import Tensor
from flambeau.utils.tensorboard import summary as summaries

_events = importlib.import_module("tensorboard.compat.proto.event_pb2")
_files = importlib.import_module("tensorboard.summary.writer.event_file_writer")

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One event file.

    Args:
        log_dir: the folder in which it is made.
        max_queue: how many events may wait to be written.
        flush_secs: how long they may.
        filename_suffix: the end of the file's name.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self.event_writer: Any = _files.EventFileWriter(
            str(log_dir), max_queue, flush_secs, filename_suffix
        )

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(
        self, event: Any, step: SupportsInt | None = None, walltime: float | None = None
    ) -> None:
        """Write one of TensorBoard's events."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: object, global_step: SupportsInt | None = None, walltime: float | None = None
    ) -> None:
        """Write one of TensorBoard's summaries."""
        self.add_event(_events.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on in another file."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes numbers, pictures, texts and more for TensorBoard, as PyTorch's class of this name.

    Args:
        log_dir: the folder; by default one in ``runs`` named by the time and the machine.
        comment: the end of the default folder's name.
        purge_step: the step from which on TensorBoard forgets what an earlier run wrote.
        max_queue: how many events may wait to be written.
        flush_secs: how long they may.
        filename_suffix: the end of the names of files.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _open(self, folder: str | os.PathLike[str]) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        """The file of the folder itself, opened again if it was closed."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step, log = self.purge_step, _events.SessionLog
                version = _events.Event(step=step, file_version="brain.Event:2")
                self.file_writer.add_event(version)
                start = log(status=log.START)
                self.file_writer.add_event(_events.Event(step=step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str | os.PathLike[str]:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: object,
        global_step: SupportsInt | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number."""
        made = summaries.scalar(tag, scalar_value, new_style, double_precision)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, object],
        global_step: SupportsInt | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write several numbers for one plot, each to a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        writers = self.all_writers or {}
        for tag, value in tag_scalar_dict.items():
            place = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if place not in writers:
                writers[place] = self._open(place)
            writers[place].add_summary(summaries.scalar(main_tag, value), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: object,
        global_step: SupportsInt | None = None,
        bins: str | int | Sequence[float] | Tensor = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write how values are spread."""
        made = summaries.histogram(tag, values, bins, max_bins)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: object,
        global_step: SupportsInt | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write a picture."""
        made = summaries.image(tag, img_tensor, dataformats)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: object,
        global_step: SupportsInt | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write pictures as a grid of them."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self,
        tag: str,
        figure: object,
        global_step: SupportsInt | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Write one of matplotlib's figures, or several side by side."""
        agg = importlib.import_module("matplotlib.backends.backend_agg")
        numpy = importlib.import_module("numpy")
        drawn = []
        for each in figure if isinstance(figure, list) else [figure]:
            canvas = agg.FigureCanvasAgg(each)
            canvas.draw()
            drawn.append(numpy.asarray(canvas.buffer_rgba())[..., :3].transpose(2, 0, 1).copy())
            if close:
                importlib.import_module("matplotlib.pyplot").close(each)
        if isinstance(figure, list):
            self.add_image(tag, numpy.stack(drawn), global_step, walltime, "NCHW")
        else:
            self.add_image(tag, drawn[0], global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: object,
        global_step: SupportsInt | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Write a sound of one channel, between -1 and 1."""
        made = summaries.audio(tag, snd_tensor, sample_rate)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: SupportsInt | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write a text."""
        made = summaries.text(tag, text_string)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: object,
        predictions: object,
        global_step: SupportsInt | None = None,
        num_thresholds: int = 127,
        weights: object = None,
        walltime: float | None = None,
    ) -> None:
        """Write precision and recall over thresholds."""
        made = summaries.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, object],
        hparam_domain_discrete: object = None,
        run_name: str | None = None,
        global_step: SupportsInt | None = None,
    ) -> None:
        """Write the settings of a run and its results, to a folder of their own."""
        parts = summaries.hparams(hparam_dict, metric_dict)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            for each in parts:
                writer._get_file_writer().add_summary(each, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Say which numbers are drawn into which charts."""
        self._get_file_writer().add_summary(summaries.custom_scalars(layout))

    def add_embedding(
        self,
        mat: object,
        metadata: Sequence[Any] | None = None,
        label_img: object = None,
        global_step: SupportsInt | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Write points for the projector, with a label for each.

        Raises:
            NotImplementedError: pictures for the points are given.
        """
        if label_img is not None:
            raise NotImplementedError("add_embedding(): flambeau writes labels, and no pictures")
        points = summaries.as_tensor(mat)
        place = f"{int(global_step or 0):05d}/{tag.replace('/', '%2F')}"
        folder = Path(self._get_file_writer().get_logdir())
        (folder / place).mkdir(parents=True, exist_ok=True)
        rows = ["\t".join(map(str, row)) for row in points.tolist()]
        (folder / place / "tensors.tsv").write_text("\n".join(rows) + "\n")
        config = f'embeddings {{\n  tensor_name: "{tag}:{int(global_step or 0):05d}"\n'
        if metadata is not None:
            head = ["\t".join(metadata_header)] if metadata_header else []
            labels = ["\t".join(map(str, x)) if metadata_header else str(x) for x in metadata]
            text = "\n".join([*head, *labels]) + "\n"
            (folder / place / "metadata.tsv").write_text(text, encoding="utf-8")
            config += f'  metadata_path: "{place}/metadata.tsv"\n'
        config += f'  tensor_path: "{place}/tensors.tsv"\n'
        with (folder / "projector_config.pbtxt").open("a", encoding="utf-8") as file:
            file.write(config + "}\n")

    def add_graph(self, *args: object, **kwargs: object) -> None:
        """Refused: a graph is drawn from PyTorch's traces.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "add_graph(): flambeau draws no graph of a model; `flambeau.nn.utils.summary` or the "
            "graph behind `grad_fn` shows its structure"
        )

    def flush(self) -> None:
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits and close the files; a later call opens others."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
