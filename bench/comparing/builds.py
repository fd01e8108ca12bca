# SPDX-License-Identifier: Apache-2.0
"""Builds collx_perf, memory_limit or socket_limit, processors_apart, and the peers' programs where needed.

Installs nothing. Says which Debian packages are missing.
"""
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

from comparing import hosts

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)

PEERS = ["openmpi", "mpich", "gloo"]
PACKAGES = {"openmpi": "openmpi-bin libopenmpi-dev", "mpich": "mpich libmpich-dev", "gloo": "libgloo-dev g++"}
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "mpiexec.openmpi"], "mpich": ["mpiexec.mpich", "mpiexec.hydra"]}
MPI_COMPILERS = {"openmpi": "mpicc.openmpi", "mpich": "mpicc.mpich"}
CXX_COMPILERS = ["g++", "clang++", "c++"]
METHOD_SOURCES = ["perf/method.h", "perf/own_host.hpp", "perf/pin.hpp", "perf/pin.cpp", "plain/options.hpp",
                  "plain/team.hpp", "plain/timing.hpp"]


class Missing(Exception):
    """Something is not there that the user can install or mend."""


@dataclass
class Built:
    folder: str
    collx: str = ""
    limit: str = ""
    peers: dict = field(default_factory=dict)  # name -> program
    notes: list = field(default_factory=list)  # on peers that are left out
    apart: str = ""


def folder_of(asked):
    return os.path.abspath(asked.build or os.path.join(ROOT, "build", "bench"))


def prepare(asked):
    folder = folder_of(asked)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as problem:
        raise Missing(f"cannot make {folder}: {problem.strerror}; give --build a folder that can be "
                      "written to") from None
    built = Built(folder)
    for peer in asked.peers:
        if not is_installed(peer):
            built.notes.append(f"{peer} is not installed and left out: run  apt-get install {PACKAGES[peer]}")
            continue
        try:
            built.peers[peer] = build_peer(peer, folder)
        except Missing as problem:  # another version of it than is known here, perhaps
            built.notes.append(f"{peer} is installed and left out: {problem}")
    if built.notes and asked.peers_are_named:
        raise Missing("; ".join(built.notes).replace(" and left out", "") + "; or leave it out with --peers")
    limit = "socket_limit" if asked.transport == "tcp" else "memory_limit"
    targets = (["collx_perf"] if asked.memory else []) + ([limit] if asked.limit else [])
    build_own(folder, targets, asked)
    built.collx = os.path.join(folder, "bench", "collx_perf") if asked.memory else ""
    built.limit = os.path.join(folder, "bench", limit) if asked.limit else ""
    built.apart = build_apart(folder)
    return built


def first_found(names):
    return next((path for path in map(shutil.which, names) if path), None)


def is_installed(peer):
    if peer == "gloo":
        return has_gloo()
    return bool(shutil.which(MPI_COMPILERS[peer]) and first_found(LAUNCHERS[peer]))


def has_gloo():
    """Asks the compiler, which knows where headers and libraries lie."""
    compiler = first_found(CXX_COMPILERS)
    if not compiler:
        return False
    asks = [compiler, "-x", "c++", "-", "-lgloo", "-o", os.devnull]
    source = "#include <gloo/config.h>\nint main() {}\n"
    return subprocess.run(asks, input=source, text=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def quietly(command, what):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Missing(f"{what} failed: {' '.join(command)}\n{done.stdout}")


def build_own(folder, targets, asked):
    """CMake decides whether anything is to do. Only sums of floats are compared: no more is compiled."""
    if not targets:
        return
    if not shutil.which("cmake"):
        raise Missing("not installed: run  apt-get install cmake g++")
    over_tcp = hosts.is_networked(asked)
    what = " and ".join(targets)
    print(f"building {what} (a minute, the first time)", file=sys.stderr)
    quietly(["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DCOLLX_BUILD_TESTS=OFF",
             "-DCOLLX_BUILD_EXAMPLES=OFF", "-DCOLLX_BUILD_BENCH=ON", "-DCOLLX_PERF_TYPES=float",
             "-DCOLLX_PERF_OPERATORS=sum", f"-DCOLLX_PERF_TCP_TYPES={'float' if over_tcp else ''}",
             f"-DCOLLX_PERF_THREADS={'ON' if asked.transport == 'threads' else 'OFF'}",
             *(["-DCOLLX_PERF_COMPOSITE=ON"] if hosts.are_shared(asked) else [])],
            f"configuring {what}")
    if over_tcp and not has_tcp(folder):
        raise Missing("collx's transport over TCP needs OpenSSL: run  apt-get install libssl-dev")
    quietly(["cmake", "--build", folder, "--parallel", str(os.cpu_count()), "--target", *targets],
            f"building {what}")


def has_tcp(folder):
    with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as cache:
        return any(line.startswith("COLLX_PERF_TCP_TYPES:STRING=float") for line in cache)


def build_peer(peer, folder):
    if peer == "gloo":
        sources = ["peers/gloo_perf.cpp", "perf/pin.cpp"]
        compiler, flags, libraries = first_found(CXX_COMPILERS), ["-std=c++20", "-O3"], ["-lgloo", "-pthread"]
    else:
        sources = ["peers/mpi_perf.c"]
        compiler, flags, libraries = shutil.which(MPI_COMPILERS[peer]), ["-O3"], []
    name = os.path.splitext(os.path.basename(sources[0]))[0] + f"_{peer}"
    return build_program(os.path.join(folder, name), sources, [compiler, *flags], libraries)


def build_apart(folder):
    """Needs a compiler only, since peers may be measured alone. Without one nobody knows how far processors are."""
    compiler = first_found(CXX_COMPILERS)
    sources = ["limit/apart.cpp", "perf/pin.cpp"]
    return build_program(os.path.join(folder, "processors_apart"), sources, [compiler, "-std=c++20", "-O2"]) \
        if compiler else ""


def build_program(program, sources, compile_command, libraries=()):
    read = [os.path.join(BENCH, source) for source in sources + METHOD_SOURCES]
    if not os.path.exists(program) or os.path.getmtime(program) < max(map(os.path.getmtime, read)):
        quietly([*compile_command, *read[:len(sources)], "-o", program, *libraries],
                f"building {os.path.basename(program)}")
    return program
