"""A package's files as they are sent: with a publisher.json, and packed."""
import io
import json
import tarfile
import zipfile


def zip_of(files):
    """A zip archive of a package's files, as bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for path, text in files.items():
            z.writestr(path, text)
    return out.getvalue()


def tar_of(files):
    """The same as tar.gz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for path, text in files.items():
            data = text.encode()
            info = tarfile.TarInfo(path)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def with_manifest(name, files):
    return {"publisher.json": json.dumps({"name": name, "version": "1.0.0", "description": f"{name} of the tests"}), **files}
