"""Meshes in your own tests: deterministic, in virtual time (docs/python.md)."""
from wavetank import actions
from wavetank._action import Action
from wavetank._program import WavetankError, program
from wavetank.log import Input, Log
from wavetank.mesh import App, Cluster, Deployment, Mesh, Node, Object
from wavetank.tables import arrow, frame, plot
from wavetank.world import (Breach, Endpoint, Expectation, Requests, RunResult, Service, Settled, TraceEvent, World, replay,
                            run)

__all__ = ["Action", "App", "Breach", "Cluster", "Deployment", "Endpoint", "Expectation", "Mesh", "Node", "Object",
           "Input", "Log", "Requests", "RunResult", "Service", "Settled", "TraceEvent", "WavetankError", "World", "actions", "arrow",
           "frame", "plot", "program", "replay", "run"]
