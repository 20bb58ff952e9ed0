"""Writes a FileDescriptorSet with the part of Envoy's API that is generated out of the PyPI wheel `xds-protos`, and a
C++ source with the descriptors of all of it, for messages that have no class here.

usage: extract_descriptors.py WHEEL ROOTS OUT.fds OUT.txt OUT.cc

The wheel's modules carry their descriptors as literals; nothing of it is imported. ROOTS is a text file with one
proto path a line; OUT.fds holds their closure. Annotation options (validate, udpa, ...) are cleared, since protoc
would otherwise generate and we compile code for them that nobody calls. OUT.txt lists the files to generate: all but
google.protobuf's own, which libprotobuf already has.
"""
import ast
import sys
import zipfile

from google.protobuf import descriptor_pb2

ANNOTATIONS = ("validate/", "udpa/annotations/", "envoy/annotations/", "xds/annotations/",
               "google/api/annotations", "google/api/http")


def literal(source: str) -> bytes | None:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile":
            return ast.literal_eval(node.args[0])
    return None


def strip(message) -> None:
    """Clears extension options below `message`, and keeps the standard ones (packed, map_entry, deprecated)."""
    for field, value in message.ListFields():
        if field.name == "options":
            value.DiscardUnknownFields()
            for extension, _ in list(value.ListFields()):
                if extension.is_extension:
                    value.ClearExtension(extension)
        elif field.type == field.TYPE_MESSAGE:
            for item in value if isinstance(value, (list,)) or hasattr(value, "add") else [value]:
                strip(item)


def write_source(data: bytes, out) -> None:
    """A string literal: compilers take a megabyte of it in a moment, and of a list of numbers in a minute."""
    out.write("namespace wavetank::pilot {\nextern const unsigned long kEnvoyApiSize;\nextern const char kEnvoyApi[];\n"
              f"const unsigned long kEnvoyApiSize = {len(data)};\nconst char kEnvoyApi[] =\n")
    for at in range(0, len(data), 64):
        out.write('"' + "".join(f"\\{byte:03o}" for byte in data[at:at + 64]) + '"\n')
    out.write(";\n}  // namespace wavetank::pilot\n")


def main() -> None:
    wheel, roots, out_set, out_list, out_all = sys.argv[1:]
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith("_pb2.py"):
                data = literal(archive.read(name).decode())
                if data is not None:
                    proto = descriptor_pb2.FileDescriptorProto.FromString(data)
                    files[proto.name] = proto
    from google.protobuf import (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
    known = [descriptor_pb2, any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2]
    for module in known:
        files[module.DESCRIPTOR.name] = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)

    generated, rest = [], False
    result, done = descriptor_pb2.FileDescriptorSet(), set()

    def add(name: str) -> None:
        if name in done:
            return
        done.add(name)
        if name not in files:
            raise SystemExit(f"{wheel} has no {name}; check the pinned version against {roots}")
        proto = files[name]
        kept = [d for d in proto.dependency if not d.startswith(ANNOTATIONS)]
        public = [proto.dependency[i] for i in proto.public_dependency]
        del proto.dependency[:], proto.public_dependency[:], proto.weak_dependency[:]
        proto.dependency.extend(kept)
        proto.public_dependency.extend(kept.index(d) for d in public if d in kept)
        if not name.startswith("google/protobuf/"):
            strip(proto)
        for dependency in kept:
            add(dependency)
        if not name.startswith("google/protobuf/") and not rest:
            generated.append(name)
        result.file.append(proto)

    with open(roots, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                add(line.strip())
    with open(out_set, "wb") as out:
        out.write(result.SerializeToString(deterministic=True))
    with open(out_list, "w", encoding="utf-8") as out:
        out.writelines(f"{name}\n" for name in generated)
    rest = True
    for name in sorted(files):
        if name.startswith(("envoy/", "udpa/", "xds/")) and not name.startswith(ANNOTATIONS):
            add(name)
    with open(out_all, "w", encoding="utf-8") as out:
        write_source(result.SerializeToString(deterministic=True), out)


main()
