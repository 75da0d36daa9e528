"""Models that `tightship serve` is given: files, folders of files, and Triton's repositories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tightship.cli.planned_shapes import Given, check_used, shapes_of
from tightship.driver.oip.model_folder import ModelFolder, model_folders
from tightship.driver.oip.model_source import ModelSource, Source
from tightship.embedding.vocabulary_file import vocabulary_beside
from tightship.errors import InputError, TightshipError
from tightship.loading.activations import Activations

SUFFIXES = (".onnx", ".tship", ".gguf")

TEXTS = ".gguf"
"""Suffix of models with a vocabulary."""


@dataclass(frozen=True, slots=True)
class ServedSources:
    """Places of models, read anew by each call.

    Attributes:
        given: Files and folders of files.
        folders: Those of `given` that were folders at the start.
        repositories: Folders in Triton's layout.
        shapes: Shapes to plan for.
        threads: Threads of each kernel of a language model.
        max_memory: Most bytes of a language model and its sessions; None for no limit.
        share: Whether language models are prepared once for the user.
        activations: Type of the activations of GGUF files, as for `load`.
    """

    given: Sequence[Path]
    folders: frozenset[Path]
    repositories: Sequence[Path]
    shapes: Given
    threads: int | None = None
    max_memory: int | None = None
    share: bool = False
    activations: Activations | None = None

    @classmethod
    def of(
        cls, given: Sequence[Path], repositories: Sequence[Path], shapes: Given
    ) -> "ServedSources":
        """Check places.

        Raises:
            InputError: A place does not exist or has no model, two models have one name, or a shape
                fits none.
        """
        folders = frozenset(path for path in given if path.is_dir())
        for path in given:
            if not path.exists():
                raise InputError(
                    f"No file or folder `{path}` exists; name an ONNX file, a prepared model "
                    "(.tship) or a folder of them."
                )
            if path in folders and not _inside(path):
                raise InputError(
                    f"The folder `{path}` has no model (`.onnx`, `.tship`, `.gguf`).{_hint(path)}"
                )
        found = cls(given, folders, repositories, shapes)
        check_used({**_latest_files(found._in_repositories()), **found._files()}, shapes)
        return found

    def __call__(self) -> Mapping[str, Source]:
        """Return the current models by the names that clients use.

        Raises:
            InputError: Two models have one name, or a repository is gone.
        """
        found: dict[str, Source] = {
            name: self._source(name, file) for name, file in self._files().items()
        }
        for name, folder in self._in_repositories().items():
            if name in found:
                raise _clash(found[name], folder, name)
            found[name] = folder
        return found

    @property
    def has_texts(self) -> bool:
        """Whether a model of texts is among the files."""
        return any(map(_has_texts, self._files().values()))

    @property
    def has_gguf(self) -> bool:
        """Whether a GGUF file is among the files."""
        return any(file.suffix == TEXTS for file in self._files().values())

    def _source(self, name: str, file: Path) -> ModelSource:
        shapes = shapes_of(name, file, self.shapes) or None
        if not _has_texts(file):
            return ModelSource(file, shapes)
        return ModelSource(
            file, shapes, threads=self.threads, max_memory=self.max_memory, share=self.share,
            activations=self.activations if file.suffix == TEXTS else None,
        )  # fmt: skip

    def instance_count(self) -> int:
        """Return the largest number of runs at once that a configuration counts on."""
        counts = [1]
        for folder in self._in_repositories().values():
            try:
                found = folder.config().instance_count
            except (TightshipError, OSError):
                continue  # loading it reports the reason
            counts.append(found)
        return max(counts)

    def _files(self) -> dict[str, Path]:
        """Map names to files; the name is the file's, without suffix, and a folder is its files."""
        found: dict[str, Path] = {}
        for path in self.given:
            for file in _inside(path) if path in self.folders else [path]:
                if file.stem in found:
                    raise _clash(found[file.stem], file, file.stem)
                found[file.stem] = file
        return found

    def _in_repositories(self) -> dict[str, ModelFolder]:
        found: dict[str, ModelFolder] = {}
        for repository in self.repositories:
            folders = model_folders(repository, partial(shapes_of, given=self.shapes))
            for name, folder in folders.items():
                if name in found:
                    raise _clash(found[name], folder, name)
                found[name] = folder
        return found


def _has_texts(file: Path) -> bool:
    """Whether a model has a vocabulary, in its file or beside it."""
    return file.suffix == TEXTS or (file.suffix == ".onnx" and vocabulary_beside(file) is not None)


def _clash(first: object, second: object, name: str) -> InputError:
    places = [getattr(each, "path", each) for each in (first, second)]
    return InputError(f"`{places[0]}` and `{places[1]}` would both be called `{name}`; rename one.")


def _latest_files(folders: Mapping[str, ModelFolder]) -> dict[str, Path]:
    """Return the file of the greatest version of each model that has one."""
    found = {}
    for name, folder in folders.items():
        try:
            sources = tuple(folder.versions().values())
        except (TightshipError, OSError):
            continue  # loading it reports the reason
        found[name] = Path(sources[-1].path)
    return found


def _hint(folder: Path) -> str:
    """Return where to give a folder that looks like Triton's layout."""
    is_repository = any(folder.glob("*/config.pbtxt")) or any(folder.glob("*/1/model.onnx"))
    return (
        f" Give a repository of Triton's layout as `--model-repository {folder}`." * is_repository
    )


def _inside(folder: Path) -> list[Path]:
    """Return the models in a folder; none if the folder is gone."""
    return sorted(each for each in folder.glob("*") if each.suffix in SUFFIXES)
