# SPDX-License-Identifier: Apache-2.0
"""What is started: builds collx_perf and the MPI program where needed, and knows each launcher's flags.

Installs nothing. Says which Debian packages are missing.
"""
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)

MPI_PACKAGES = {"openmpi": "openmpi-bin libopenmpi-dev", "mpich": "mpich libmpich-dev"}
MPI_COMPILERS = {"openmpi": ["mpicc.openmpi"], "mpich": ["mpicc.mpich"]}
MPI_LAUNCHERS = {"openmpi": ["mpirun.openmpi", "mpiexec.openmpi"],
                 "mpich": ["mpiexec.mpich", "mpiexec.hydra"]}


class Missing(Exception):
    """Something is not there that the user can install or mend."""


@dataclass
class Launch:
    name: str       # as in the table: "collx private", "openmpi"
    peer: str       # "" for collx
    memory: str     # "" for peers
    command: list
    json_path: str  # where it writes its points; "" for lines on stdout


def prepare(asked):
    build = os.path.abspath(asked.build or os.path.join(ROOT, "build", "bench"))
    os.makedirs(build, exist_ok=True)
    require_tools(asked)
    launches = []
    if asked.memory:
        program = build_collx(build)
        launches += [collx_launch(program, memory, build, asked) for memory in asked.memory]
    for peer in asked.peers:
        launches.append(peer_launch(peer, build_peer(peer, build), asked))
    return launches


def first_found(names):
    return next((path for path in map(shutil.which, names) if path), None)


def require_tools(asked):
    wanted = []
    for peer in asked.peers:
        if not (first_found(MPI_COMPILERS[peer]) and first_found(MPI_LAUNCHERS[peer])):
            wanted.append(MPI_PACKAGES[peer])
    if asked.memory and not shutil.which("cmake"):
        wanted.append("cmake g++")
    if wanted:
        narrow = "; or leave it out with --peers" if asked.peers else ""
        raise Missing(f"not installed: run  apt-get install {' '.join(wanted)}{narrow}")


def quietly(command, what):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Missing(f"{what} failed: {' '.join(command)}\n{done.stdout}")


def build_collx(build):
    """CMake decides whether anything is to do. Only sums of floats are compared: no more is compiled."""
    print("building collx_perf (half a minute, the first time)", file=sys.stderr)
    quietly(["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DCOLLX_BUILD_TESTS=OFF",
             "-DCOLLX_BUILD_EXAMPLES=OFF", "-DCOLLX_BUILD_BENCH=ON", "-DCOLLX_PERF_TYPES=float",
             "-DCOLLX_PERF_OPERATORS=sum"],
            "configuring collx_perf")
    quietly(["cmake", "--build", build, "--parallel", str(os.cpu_count()), "--target", "collx_perf"],
            "building collx_perf")
    return os.path.join(build, "bench", "collx_perf")


def build_peer(peer, build):
    source = os.path.join(BENCH, "peers", "mpi_perf.c")
    program = os.path.join(build, f"mpi_perf_{peer}")
    newest = max(os.path.getmtime(source), os.path.getmtime(os.path.join(BENCH, "perf", "method.h")))
    if not os.path.exists(program) or os.path.getmtime(program) < newest:
        compiler = first_found(MPI_COMPILERS[peer])
        quietly([compiler, "-O2", source, "-o", program], f"building mpi_perf for {peer}")
    return program


def fits(asked):
    return asked.ranks <= len(os.sched_getaffinity(0))


def collx_launch(program, memory, build, asked):
    json_path = os.path.join(build, f"collx_{memory}.json")
    command = [program, asked.collective, "--ranks", str(asked.ranks), "--transport", asked.transport,
               "--memory", memory, "--algorithm", asked.algorithm, "--places", asked.place,
               "--state", asked.state, "--json", json_path]
    if asked.collective != "barrier":
        command += ["--bytes", ",".join(map(str, asked.bytes))]
    return Launch(f"collx {memory}", "", memory, command, json_path)


def peer_launch(peer, program, asked):
    arguments = [program, asked.collective, "--bytes", ",".join(map(str, asked.bytes)),
                 "--in-place", "1" if asked.place == "in_place" else "0"]
    if asked.state == "hot":
        arguments += ["--pool", "0"]
    launcher = [first_found(MPI_LAUNCHERS[peer])]
    placed = openmpi_flags(asked) if peer == "openmpi" else mpich_flags(asked)
    return Launch(peer, peer, "", launcher + placed + ["-n", str(asked.ranks)] + arguments, "")


def openmpi_flags(asked):
    flags = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    if fits(asked):
        return flags + ["--bind-to", "core"]
    return flags + ["--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]


def mpich_flags(asked):
    return ["-bind-to", "core"] if fits(asked) else []
