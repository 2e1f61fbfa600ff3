// zovn-simulate: reads a scenario from standard input, writes results to standard output.
#include "report.h"

int main(void) {
    static struct simulation simulation;
    simulation.config = config_read(stdin);
    simulation_set_up(&simulation);
    simulation_run(&simulation);
    report_write(&simulation, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
