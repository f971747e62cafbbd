// SPDX-License-Identifier: MIT
// Each rank says where it runs, and what the sum over all ranks is.
//
// allreduce [NUMBERS]: how many doubles are summed. Few of them are sent in the message
// itself; for many, a message first tells where to fetch them.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);

    int count = argc > 1 ? atoi(argv[1]) : 1;
    double *mine = count > 0 ? malloc(count * sizeof *mine) : NULL;
    double *sums = count > 0 ? malloc(count * sizeof *sums) : NULL;
    if (!mine || !sums) {
        fprintf(stderr, "allreduce: NUMBERS must be at least 1, and fit in memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < count; i++)
        mine[i] = rank + 1 + i % 7;
    double began = MPI_Wtime();
    MPI_Allreduce(mine, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double took = MPI_Wtime() - began;

    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += sums[i] != size * (size + 1) / 2 + size * (i % 7);
    printf("rank %d of %d on %s: sum %g, %d of %d wrong, %.6f s\n", rank, size, host,
           sums[0], wrong, count, took);
    free(mine);
    free(sums);
    MPI_Finalize();
    return wrong > 0;
}
