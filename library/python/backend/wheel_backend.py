"""A build backend (PEP 517) that packs what stands here and the program into a wheel, with the standard library alone."""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "library" / "python" / "wavetank"
ENTRY_POINTS = """[console_scripts]
wavetank = wavetank._program:main

[pytest11]
wavetank = wavetank.pytest_plugin
"""


def _version():
    return re.search(r"^project\(wavetank VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def _program():
    named = os.environ.get("WAVETANK_PROGRAM")
    if named:
        return pathlib.Path(named)
    built = ROOT / "build" / "wavetank"
    if not built.exists():
        subprocess.run([ROOT / "tools" / "setup"], check=True)
        subprocess.run([ROOT / "tools" / "build", "build", "--", "wavetank"], check=True)
    return built


def _metadata():
    return (f"Metadata-Version: 2.1\nName: wavetank\nVersion: {_version()}\n"
            "Summary: Deterministic simulation of multi-cluster Istio meshes, for tests\nRequires-Python: >=3.9\n"
            "Provides-Extra: test\nRequires-Dist: pytest; extra == 'test'\nRequires-Dist: hypothesis; extra == 'test'\n"
            "Provides-Extra: tables\nRequires-Dist: pandas; extra == 'tables'\nRequires-Dist: pyarrow; extra == 'tables'\n"
            "Provides-Extra: plots\nRequires-Dist: altair; extra == 'plots'\n")


def _tag():
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"py3-none-{platform}"


def _info():
    return f"wavetank-{_version()}.dist-info"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory) / _info()
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(_metadata())
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: wavetank\nRoot-Is-Purelib: false\nTag: {_tag()}\n")
    return _info()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    program = _program()
    name = f"wavetank-{_version()}-{_tag()}.whl"
    record = []
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(
            pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:

        def add(path, data, mode=0o644):
            info = zipfile.ZipInfo(path, (2023, 9, 1, 0, 0, 0))
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")

        for source in sorted(PACKAGE.glob("*")):
            if source.suffix in (".py", ".typed"):
                add(f"wavetank/{source.name}", source.read_bytes())
        actions = subprocess.run([program, "schema", "--actions", "python"], check=True, stdout=subprocess.PIPE).stdout
        add("wavetank/actions.py", actions)
        stripped = pathlib.Path(scratch) / "wavetank"
        shutil.copy(program, stripped)
        if shutil.which("strip"):
            subprocess.run(["strip", stripped], check=True)
        add("wavetank/bin/wavetank", stripped.read_bytes(), 0o755)
        prepare_metadata_for_build_wheel(scratch)
        for file in ("METADATA", "entry_points.txt", "WHEEL"):
            add(f"{_info()}/{file}", (pathlib.Path(scratch) / _info() / file).read_bytes())
        record.append(f"{_info()}/RECORD,,")
        wheel.writestr(f"{_info()}/RECORD", "\n".join(record) + "\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the package is made from a clone: pip install .")
