"""The model as it comes back from a file that the target's own library has written."""

from __future__ import annotations

from outvote.bench.relation import Asked, OtherWay
from outvote.core.protocol import Read, Save
from outvote.core.specimen import Specimen
from outvote.run.settle import ask_settled

NAME = "saved"
TITLE = "a model that is saved and loaded must give the same"


def twin(asked: Asked) -> OtherWay | None:
    """A model that is not to be saved, or not in a form that can be read, says nothing."""
    pool = asked.bench.pool
    if not asked.target.can("save", "read"):
        return None
    saved = ask_settled(pool, asked.name, Save(model=asked.specimen.model))
    if not saved.ok:
        return None
    loaded = ask_settled(pool, asked.name, Read(file=saved.reply.file))
    if not loaded.ok or len(loaded.reply.model.inputs) != len(asked.specimen.inputs):
        return None
    return OtherWay(Specimen(loaded.reply.model, asked.specimen.inputs), remade=True)
