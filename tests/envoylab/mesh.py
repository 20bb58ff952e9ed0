"""A served mesh: `wavetank serve`, and per pod a namespace, a real Envoy and, for helloworld, an application."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

from network import Network

PROXY_USER = 1337  # whose connections are not redirected
HOST = "helloworld.sample:5000"


class Failed(Exception):
    pass


def wait_for(what, seconds, condition, step=0.05):
    """The first true answer of `condition`, which may raise OSError meanwhile."""
    deadline = time.monotonic() + seconds
    last = None
    while time.monotonic() < deadline:
        try:
            answer = condition()
            if answer:
                return answer
        except (OSError, http.client.HTTPException, ValueError) as e:
            last = e
        time.sleep(step)
    raise Failed(f"{what}: not within {seconds} s{f' ({last})' if last else ''}")


class Child:
    """A process with a log, ended by its id; the kernel ends it if this one dies first."""

    def __init__(self, command, log, user=None):
        self.log = log
        with open(log, "ab") as out:
            os.chmod(log, 0o666)  # Envoy opens /dev/stdout anew, as its own user
            own = ["setpriv", "--pdeathsig", "KILL"]
            self.process = subprocess.Popen([*own, *command] if user is None else command, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out)

    def running(self):
        return self.process.poll() is None

    def end(self, number=signal.SIGKILL):
        if self.running():
            self.process.send_signal(number)
        self.process.wait(timeout=60)

    def lines(self, skip=0):
        with open(self.log, errors="replace") as f:
            return f.read().splitlines()[skip:]


class App:
    """Answers with its version, how it was called, and as whom its sidecar knows the caller."""

    def __init__(self, pod, version):
        self.version = version
        self.delay = lambda: 0.0  # seconds before an answer
        self.listener = pod.listen(5000)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as lines:
            try:
                while lines.readline():
                    headers = http.client.parse_headers(lines)
                    time.sleep(self.delay())
                    body = json.dumps({"version": self.version, "peer": headers.get("x-forwarded-client-cert", "")})
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" %
                                       (len(body), body.encode()))
            except (OSError, http.client.HTTPException):
                pass

    def close(self):
        self.listener.close()


class Pod:
    def __init__(self, mesh, facts, namespace):
        self.mesh, self.namespace = mesh, namespace
        self.name, self.cluster, self.ip, self.app = facts["name"], facts["cluster"], facts["ip"], facts["app"]
        self.envoy = self.application = None

    def start_envoy(self, bootstrap=None):
        config = bootstrap or f"{self.mesh.folder}/boot/{self.name}.json"
        os.chmod(config, 0o644)
        self.envoy = Child(self.namespace.inside(
            "setpriv", "--reuid", str(PROXY_USER), "--regid", str(PROXY_USER), "--clear-groups", "--pdeathsig", "KILL",
            self.mesh.envoy, "-c", config, "--concurrency", "1", "--disable-hot-restart", "--file-flush-interval-msec",
            "50", "-l", "error"), f"{self.mesh.folder}/{self.app}-{self.cluster}.log", PROXY_USER)

    def admin(self, path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", 15000)
        connection.sock = self.namespace.connect(("127.0.0.1", 15000))
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.read().decode()
        finally:
            connection.close()

    def ready(self):
        if not self.envoy.running():
            raise Failed(f"{self.name}: Envoy ended; see {self.envoy.log}")
        return self.admin("/ready").strip() == "LIVE"

    def stats(self, pattern):
        """{name: value} of the counters and gauges that match."""
        out = {}
        for line in self.admin("/stats").splitlines():
            name, _, value = line.rpartition(": ")
            if re.search(pattern, name) and value.isdigit():
                out[name] = int(value)
        return out

    def endpoints(self, cluster="outbound|5000||helloworld.sample.svc.cluster.local"):
        """Addresses of the cluster's hosts."""
        found = re.findall(rf"^{re.escape(cluster)}::([0-9.]+:[0-9]+)::weight::", self.admin("/clusters"), re.M)
        return sorted(found)

    def serial(self):
        """Of the workload certificate in force."""
        chains = [c["cert_chain"] for c in json.loads(self.admin("/certs"))["certificates"] if c["cert_chain"]]
        return chains[0][0]["serial_number"] if chains else None

    def vip(self):
        """helloworld's address in this pod's cluster, out of its routes."""
        dump = json.loads(self.admin("/config_dump?resource=dynamic_route_configs"))
        for config in dump.get("configs", []):
            for host in config["route_config"].get("virtual_hosts", []):
                if host["name"].startswith("helloworld."):
                    return next(d for d in host["domains"] if re.fullmatch(r"[0-9.]+", d))
        raise Failed(f"{self.name} has no route to helloworld")

    def ask(self, to, connection=None):
        """(code, version or None, who called) of a request through this pod's own Envoy; code 0: closed or refused."""
        own = connection is None
        if own:
            connection = self.connection(to)
        try:
            connection.request("GET", "/hello", headers={"host": HOST})
            answer = connection.getresponse()
            body = answer.read().decode(errors="replace")
            if answer.status != 200:
                return answer.status, None, body
            facts = json.loads(body)
            return 200, facts["version"], facts["peer"]
        except (OSError, http.client.HTTPException) as e:
            return 0, None, str(e)
        finally:
            if own:
                connection.close()

    def connection(self, to):
        connection = http.client.HTTPConnection(to, 5000)
        try:
            connection.sock = self.namespace.connect((to, 5000), timeout=60)
        except OSError:
            pass  # asked again by the request itself, and told there
        return connection


class Traffic:
    """Requests from a pod at a steady pace until stopped: [(when, code, version)]."""

    def __init__(self, pod, to, pace=0.02):
        self.pod, self.to, self.pace = pod, to, pace
        self.answers = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopping.is_set():
            began = time.monotonic()
            code, version, text = self.pod.ask(self.to)
            self.answers.append((began, code, version, text))
            self.stopping.wait(max(0.0, began + self.pace - time.monotonic()))

    def stop(self):
        self.stopping.set()
        self.thread.join()
        return self.answers


class Mesh:
    def __init__(self, wavetank, envoy, scenario, folder, secret_ttl):
        self.wavetank, self.envoy, self.scenario, self.folder = wavetank, envoy, scenario, folder
        self.secret_ttl = secret_ttl
        self.server = None
        self.serves = 0
        self.networks, self.pods = {}, {}
        os.chmod(folder, 0o755)
        probe = ["setpriv", "--reuid", str(PROXY_USER), "--clear-groups", envoy, "--version"]
        if subprocess.run(probe, capture_output=True).returncode != 0:
            self.envoy = f"{folder}/envoy"  # its own place is closed to others
            shutil.copy(envoy, self.envoy)

    def serve(self):
        """Starts the server, anew if it ran before, and returns what it announces."""
        self.serves += 1
        socket_path, log = f"{self.folder}/xds.sock", f"{self.folder}/serve-{self.serves}.log"
        self.server = Child([self.wavetank, "serve", self.scenario, "--profile", "upstream-envoy", "--listen", "",
                             "--secure-listen", "", "--uds", socket_path, "--bootstraps",
                             f"{self.folder}/boot", "--secret-ttl", self.secret_ttl, "--timing",
                             "istiod.connections_per_second=0", "--log", f"{self.folder}/live-{self.serves}.log",
                             "--json"], log)

        def announced():
            if not self.server.running():
                raise Failed(f"wavetank serve ended: {' '.join(self.server.lines()[-3:])}")
            return next((json.loads(line) for line in self.server.lines() if line.startswith('{"listeners"')), None)

        facts = wait_for("wavetank serve", 60, announced)
        for listener in facts["listeners"]:
            os.chmod(listener["unix"], 0o666)
        return facts

    def edit(self, manifest, pattern, text):
        """Changes a manifest on disk, which the server watches."""
        path = f"{self.scenario}/{manifest}"
        with open(path) as f:
            before = f.read()
        after = re.sub(pattern, text, before)
        if after == before:
            raise Failed(f"{manifest} holds no {pattern}")
        with open(path, "w") as f:
            f.write(after)

    def build(self):
        facts = self.serve()
        for number in (1, 2):
            self.networks[f"network{number}"] = Network(number)
        self.networks["network1"].joined(self.networks["network2"])
        for pod in facts["pods"]:
            if not pod["proxy"]:
                continue
            gateway = "gateway" in pod["app"]
            namespace = self.networks[pod["network"]].add_pod(pod["name"], pod["ip"], redirect=not gateway)
            self.pods[pod["app"], pod["cluster"]] = Pod(self, pod, namespace)
        for (app, cluster), pod in self.pods.items():
            if app == "helloworld":
                pod.application = App(pod.namespace, {"cluster1": "v1", "cluster2": "v2"}[cluster])
            if cluster == "cluster2":  # the one cluster's Envoys by state of the world, the other's by delta
                self.use_delta(pod)
            pod.start_envoy()
        for pod in self.pods.values():
            wait_for(f"{pod.name} is ready", 60, pod.ready)

    def use_delta(self, pod):
        path = f"{self.folder}/boot/{pod.name}.json"
        with open(path) as f:
            bootstrap = json.load(f)
        bootstrap["dynamic_resources"]["ads_config"]["api_type"] = "DELTA_GRPC"
        with open(path, "w") as f:
            json.dump(bootstrap, f)

    def close(self):
        for pod in self.pods.values():
            if pod.envoy:
                pod.envoy.end()
            if pod.application:
                pod.application.close()
        if self.server:
            self.server.end()
        for network in self.networks.values():
            network.close()
