#!/usr/bin/env python3
"""The gateway of one network dies and comes back while applications take 300 ms, first with another pod to turn to, then with all
requests on their way through it: the simulated Envoys, then real ones with the same clients, whose gateway stays away as long,
and what befell the requests compared within the bounds below. See README.md. Exit code 0: they agree; 1: they do not; 77: cannot
be shown here, and the one line printed says why."""
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from beside import beside_simulation  # noqa: E402
from mesh import wait_for  # noqa: E402
from two_networks_test import TwoNetworks, expect  # noqa: E402

RATE = 25        # requests a second, from cluster1
TAKES = 0.3      # seconds, an application's answer
AWAY = 3         # seconds that the simulated gateway's container takes to start, at the least that it is away
AROUND = 1.5     # seconds of traffic before the gateway dies, and after it is back

STEPS = f"""flows:
  - {{name: f, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "helloworld.sample:5000", path: /hello,
     rate: {RATE}/s, connections: new}}
steps:
  - name: at rest
    do:
      - behaviour: {{app: helloworld, latency: {{p50: {int(TAKES * 1000)}ms, max: {int(TAKES * 1000)}ms}}}}
    then: [{{flow: f, requests: 20}}]
  - name: with another pod
    do:
      - kill: {{cluster: cluster2, namespace: istio-system, app: istio-eastwestgateway}}
    linger: {AROUND}s
    meanwhile: [{{flow: f}}]
  - name: no other pod
    do:
      - scale: {{cluster: cluster1, deployment: sample/helloworld-v1, replicas: 0}}
  - name: without another pod
    do:
      - kill: {{cluster: cluster2, namespace: istio-system, app: istio-eastwestgateway}}
    linger: {AROUND}s
    meanwhile: [{{flow: f}}]
"""
DEATHS = ("with another pod", "without another pod")


def simulated(mesh):
    """Of each death: how long the gateway was away, and what became of requests, by their flags."""
    with open(f"{mesh.scenario}/scenario.yaml") as f:
        scenario = f.read().replace("latency: 2ms", "latency: 100us")
    with open(f"{mesh.folder}/simulated.yaml", "w") as f:
        f.write(scenario + f"timing: {{kube.container_start: {AWAY}s}}\n" + STEPS)
    shutil.move(f"{mesh.folder}/simulated.yaml", f"{mesh.scenario}/simulated.yaml")
    done = subprocess.run([mesh.wavetank, "run", f"{mesh.scenario}/simulated.yaml", "--json"], capture_output=True, text=True)
    os.remove(f"{mesh.scenario}/simulated.yaml")
    expect("the simulation runs", done.returncode == 0, done.stderr[-400:])
    out = {}
    for step in json.loads(done.stdout)["runs"][0]["steps"]:
        if step["name"] not in DEATHS:
            continue
        (flow,) = step["traffic"]
        flags = flow["byFlags"]
        # Kubernetes' part of the way from the death to the last proxy's word of it: until the new pod was ready.
        away = max(p["stagesMs"]["Kubernetes"] for p in step["convergence"]["proxies"]) / 1000
        out[step["name"]] = {
            "away": away, "cut off": flags.get("UC", 0), "refused": flags.get("UF", 0) + flags.get("URX,UF", 0),
            "others": sum(n for f, n in flags.items() if f not in ("-", "UC", "UF", "URX,UF")),
            "answered": flow["sent"] - flow["failed"], "tries again": flow["attempts"] - flow["sent"]}
    return out


class Clients:
    """Requests from one pod at a steady rate until stopped, each over a connection of its own."""

    def __init__(self, pod, to):
        self.pod, self.to = pod, to
        self.answers, self.threads = [], []
        self.stopping = threading.Event()
        self.pace = threading.Thread(target=self._begin, daemon=True)
        self.pace.start()

    def _begin(self):
        start = time.monotonic()
        while not self.stopping.is_set():
            self.threads.append(threading.Thread(target=self._ask, daemon=True))
            self.threads[-1].start()
            self.stopping.wait(max(0.0, start + len(self.threads) / RATE - time.monotonic()))

    def _ask(self):
        began = time.monotonic()
        code, _, text = self.pod.ask(self.to)
        self.answers.append((began, code, text or ""))

    def stop(self):
        self.stopping.set()
        self.pace.join()
        for thread in self.threads:
            thread.join(30)
        expect("every request ends", len(self.answers) == len(self.threads), (len(self.answers), len(self.threads)))
        return self.answers


def real(mesh, expected):
    lab = TwoNetworks(mesh)
    lab.publish_gateways()
    for pod in lab.hellos.values():
        pod.application.delay = lambda: TAKES
    sleep, gateway, to = lab.sleeps["cluster1"], lab.gateways["cluster2"], lab.vips["cluster1"]
    retries = lambda: sum(sleep.stats(r"helloworld.*upstream_rq_retry$").values())

    def death(name):
        before = retries()
        clients = Clients(sleep, to)
        time.sleep(AROUND)
        died = time.monotonic()
        gateway.envoy.end()
        time.sleep(max(0.0, expected[name]["away"] - started))
        gateway.start_envoy()
        wait_for("the gateway is back", 60, gateway.ready, step=0.02)
        back = time.monotonic()
        time.sleep(AROUND)
        answers = clients.stop()
        bad = [(b, code, text) for b, code, text in answers if code != 200]
        cut = [b for b, _, text in bad if "connection termination" in text]
        refused = [b for b, _, text in bad if "connection failure" in text]
        late = [b - back for b in refused if b > back + 1]
        expect(f"{name}: none is refused once the gateway is back", not late, late)
        return {"away": back - died, "cut off": len(cut), "refused": len(refused), "others": len(bad) - len(cut) - len(refused),
                "answered": len(answers) - len(bad), "tries again": retries() - before}

    # How long an Envoy takes to be ready, so that the real gateway is away as long as the simulated one.
    gateway.envoy.end()
    began = time.monotonic()
    gateway.start_envoy()
    wait_for("the gateway is back", 60, gateway.ready, step=0.02)
    started = time.monotonic() - began
    out = {"with another pod": death("with another pod")}
    mesh.edit("helloworld-v1.yaml", r"replicas: 1", "replicas: 0")
    wait_for("v1 leaves the endpoints", 60, lambda: len(sleep.endpoints()) == 1)
    out["without another pod"] = death("without another pod")
    return out


def compare(what, s, r):
    """Counts as two draws from one distribution (4.5 standard deviations) or closer: all that is on its way through the gateway is
    cut off, all that comes while it is away refused, two tries more each, to within a second's requests. With another pod few are
    refused: the least loaded of two is the one where nothing stands, so that most are tried again, within a third as many."""
    for who, o in (("simulated", s), ("real", r)):
        expect(f"{what}, {who}: nothing else happens", o["others"] == 0, o)
        expect(f"{what}, {who}: it is answered before and after", o["answered"] > RATE * AROUND, o)
        if what == "without another pod":
            expect(f"{what}, {who}: cut off", abs(o["cut off"] - RATE * TAKES) <= 3, o)
            expect(f"{what}, {who}: refused while it is away", abs(o["refused"] - RATE * o["away"]) <= RATE, o)
            expect(f"{what}, {who}: each after two tries more", abs(o["tries again"] - 2 * o["refused"]) <= RATE, o)
        else:
            expect(f"{what}, {who}: half turn to the other pod, or more", o["tries again"] > RATE * o["away"] / 2, o)
    expect(f"{what}: away as long", abs(s["away"] - r["away"]) <= 1, (s, r))
    expect(f"{what}: cut off", abs(s["cut off"] - r["cut off"]) <= 4.5 * math.sqrt(s["cut off"] + r["cut off"]) + 1, (s, r))
    if what == "with another pod":
        expect(f"{what}: refused", abs(s["refused"] - r["refused"]) <= 4.5 * math.sqrt(s["refused"] + r["refused"]) + 1, (s, r))
        expect(f"{what}: tries again", abs(s["tries again"] - r["tries again"]) <= s["tries again"] / 3, (s, r))


def compared(mesh):
    expected = simulated(mesh)
    mesh.build()
    seen = real(mesh, expected)
    for name in DEATHS:
        print(f"  {name}\n    simulated {expected[name]}\n    real      {seen[name]}")
    for name in DEATHS:
        compare(name, expected[name], seen[name])


if __name__ == "__main__":
    sys.exit(beside_simulation(__doc__, "a gateway that dies under real Envoys", compared))
