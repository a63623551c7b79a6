"""module(path): the program at path with the edits of answers.json applied, as a module."""
import json, os, types

HERE = os.path.dirname(os.path.abspath(__file__))


def source(path):
    name = os.path.basename(path)
    with open(os.path.join(HERE, name)) as f:
        text = f.read()
    with open(os.path.join(HERE, "answers.json")) as f:
        fix = json.load(f)[name]["fix"]
    for old, new in fix:
        lines = text.split("\n")
        hits = [i for i, l in enumerate(lines) if l.strip() == old.strip()]
        assert hits, (name, old)
        for i in reversed(hits):
            pad = lines[i][:len(lines[i]) - len(lines[i].lstrip())]
            lines[i:i + 1] = [pad + l if l else l for l in new.split("\n")] if new else []
        text = "\n".join(lines)
    return text


def module(path):
    m = types.ModuleType("fixed_" + os.path.basename(path)[:-3])
    m.__file__ = os.path.join(HERE, os.path.basename(path))
    exec(compile(source(path), m.__file__ + ":fixed", "exec"), m.__dict__)
    return m
