/* kiln-builder: pulls jobs over the bus and runs their SQL in the warehouse. */
#include "services/builder/builder_parts.h"

int main(int argc, char **argv)
{
    return service_run(builder_desc(), argc, argv);
}
