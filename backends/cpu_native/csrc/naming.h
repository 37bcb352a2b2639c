/* Names of what a template makes for a type: NAME(x) is x_f32 where SUFFIX is f32. */
#ifndef FLAMBEAU_NAMING_H
#define FLAMBEAU_NAMING_H

#define JOINED(a, b) a##_##b
#define NAMED(a, b) JOINED(a, b)
#define NAME(x) NAMED(x, SUFFIX)

#endif
