/* SPDX-License-Identifier: Apache-2.0 */
/* What ../start_up.cpp compares with: ranks that meet in a barrier and leave. */
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
