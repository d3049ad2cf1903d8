#include <weir/base.h>

const char *weir_version(void)
{
    return WEIR_VERSION;
}
