"""Network namespaces without names: one lives as long as this process holds it open or something runs in it, so nothing
is left behind however the process ends. Needs root, iproute2, iptables and util-linux."""
import contextlib
import ctypes
import os
import shutil
import socket
import subprocess

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
HERE = "/proc/thread-self/ns/net"
LINK_LOCAL = "169.254.7.1"  # the routers' address at every pod


def missing():
    """Why there can be no such network here, in words; empty if there can."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("ip", "iptables-restore", "nsenter", "setpriv"):
        if shutil.which(tool) is None:
            return f"{tool} is missing"
    try:
        namespace = Namespace("probe")
        namespace.run("ip", "link", "add", "wtl-probe", "type", "veth", "peer", "name", "wtl-peer")
        namespace.iptables("*nat\n-A OUTPUT -p tcp -m owner --uid-owner 1337 -j REDIRECT --to-ports 15001\nCOMMIT\n"
                           "*filter\n-A FORWARD -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n")
        namespace.close()
    except (OSError, subprocess.CalledProcessError) as e:
        return f"network namespaces are not to be had ({e})"
    return ""


def _check(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Namespace:
    def __init__(self, name):
        self.name = name
        home = os.open(HERE, os.O_RDONLY)
        try:
            _check(LIBC.unshare(CLONE_NEWNET))
            self.fd = os.open(HERE, os.O_RDONLY)
        finally:
            _check(LIBC.setns(home, CLONE_NEWNET))
            os.close(home)
        self.path = f"/proc/{os.getpid()}/fd/{self.fd}"
        self.run("ip", "link", "set", "lo", "up")

    def close(self):
        os.close(self.fd)

    @contextlib.contextmanager
    def entered(self):
        """This thread's sockets and /proc/sys/net are the namespace's meanwhile."""
        home = os.open(HERE, os.O_RDONLY)
        _check(LIBC.setns(self.fd, CLONE_NEWNET))
        try:
            yield
        finally:
            _check(LIBC.setns(home, CLONE_NEWNET))
            os.close(home)

    def inside(self, *command):
        return ["nsenter", f"--net={self.path}", *command]

    def run(self, *command, text=None):
        done = subprocess.run(self.inside(*command), input=text, text=True, capture_output=True)
        if done.returncode != 0:
            raise OSError(f"{self.name}: {' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def iptables(self, rules):
        self.run("iptables-restore", "--noflush", text=rules)

    def connect(self, address, timeout=60):
        with self.entered():
            s = socket.socket()
        s.settimeout(timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.connect(address)
        return s

    def listen(self, port):
        with self.entered():
            s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", port))
        s.listen(1024)
        return s


# What istio-init lays down in a pod: all of a pod's connections pass its Envoy but those of the Envoy itself.
REDIRECT = """*nat
:ISTIO_INBOUND - [0:0]
:ISTIO_REDIRECT - [0:0]
:ISTIO_IN_REDIRECT - [0:0]
:ISTIO_OUTPUT - [0:0]
-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001
-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
-A PREROUTING -p tcp -j ISTIO_INBOUND
-A OUTPUT -p tcp -j ISTIO_OUTPUT
-A ISTIO_INBOUND -p tcp -m multiport --dports 15008,15020,15021,15090 -j RETURN
-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT
-A ISTIO_OUTPUT -s 127.0.0.6/32 -o lo -j RETURN
-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -p tcp -m tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT
-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN
-A ISTIO_OUTPUT -j ISTIO_REDIRECT
COMMIT
"""


class Network:
    """A cluster's network: pods behind a router that lets nothing in or out but what a gateway is there for."""

    def __init__(self, number):
        self.number = number
        self.router = Namespace(f"router{number}")
        self.pods = []
        with self.router.entered():
            with open("/proc/sys/net/ipv4/ip_forward", "w") as f:
                f.write("1")
        self.router.iptables("*filter\n:FORWARD DROP [0:0]\n"
                             "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n"
                             "-A FORWARD -i wtl-p+ -o wtl-p+ -j ACCEPT\n"
                             "-A FORWARD -i wtl-p+ -o wtl-wan -p tcp --dport 15443 -j ACCEPT\n"
                             "-A FORWARD -i wtl-p+ -o wtl-wan -p tcp -j REJECT --reject-with tcp-reset\n"
                             "COMMIT\n*nat\n-A POSTROUTING -o wtl-wan -j MASQUERADE\nCOMMIT\n")

    def add_pod(self, name, ip, redirect):
        pod = Namespace(name)
        link = f"wtl-p{len(self.pods)}"
        self.router.run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", pod.path)
        self.router.run("ip", "address", "add", f"{LINK_LOCAL}/32", "dev", link)
        self.router.run("ip", "link", "set", link, "up")
        self.router.run("ip", "route", "add", f"{ip}/32", "dev", link)
        pod.run("ip", "address", "add", f"{ip}/32", "dev", "eth0")
        pod.run("ip", "link", "set", "eth0", "up")
        pod.run("ip", "route", "add", "default", "via", LINK_LOCAL, "dev", "eth0", "onlink")
        if redirect:
            pod.iptables(REDIRECT)
        self.pods.append(pod)
        return pod

    def joined(self, other):
        """A wire between two routers; what is behind them stays unreachable."""
        self.router.run("ip", "link", "add", "wtl-wan", "type", "veth", "peer", "name", "wtl-wan", "netns",
                        other.router.path)
        for network, address in ((self, "172.30.0.1/30"), (other, "172.30.0.2/30")):
            network.router.run("ip", "address", "add", address, "dev", "wtl-wan")
            network.router.run("ip", "link", "set", "wtl-wan", "up")
            network.router.run("ip", "route", "add", "default", "dev", "wtl-wan")

    def publish(self, address, pod_ip, others):
        """The load balancer of this network's gateway: `address`:15443 from the wire leads to the pod."""
        self.router.iptables(f"*nat\n-A PREROUTING -i wtl-wan -d {address} -p tcp --dport 15443 -j DNAT "
                             f"--to-destination {pod_ip}:15443\nCOMMIT\n*filter\n"
                             f"-A FORWARD -i wtl-wan -d {pod_ip} -p tcp --dport 15443 -j ACCEPT\nCOMMIT\n")
        for other in others:
            other.router.run("ip", "route", "add", f"{address}/32", "via", f"172.30.0.{self.number}")

    def close(self):
        for namespace in (self.router, *self.pods):
            namespace.close()
