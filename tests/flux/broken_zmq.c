/* SPDX-License-Identifier: MIT
 *
 * For LD_PRELOAD in a broker of Flux 0.88.0 whose link to its lead is to fail.
 * BROKEN_ZMQ=curve: as a libzmq that was built without CURVE (libzmq/src/zmq_utils.cpp,
 * options.cpp). BROKEN_ZMQ=version: what it sends says 0.87.0 (22272) in place of 0.88.0
 * (22528), as OVERLAY.hello does in src/modules/overlay.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static int broken (const char *what)
{
    const char *value = getenv ("BROKEN_ZMQ");
    return value && !strcmp (value, what);
}

int zmq_curve_keypair (char *public_key, char *secret_key)
{
    int (*real) (char *, char *) = dlsym (RTLD_NEXT, "zmq_curve_keypair");
    if (broken ("curve")) {
        errno = ENOTSUP;
        return -1;
    }
    return real (public_key, secret_key);
}

int zmq_curve_public (char *public_key, const char *secret_key)
{
    int (*real) (char *, const char *) = dlsym (RTLD_NEXT, "zmq_curve_public");
    if (broken ("curve")) {
        errno = ENOTSUP;
        return -1;
    }
    return real (public_key, secret_key);
}

int zmq_setsockopt (void *socket, int option, const void *value, size_t size)
{
    int (*real) (void *, int, const void *, size_t)
        = dlsym (RTLD_NEXT, "zmq_setsockopt");
    if (broken ("curve")
        && option >= ZMQ_CURVE_SERVER && option <= ZMQ_CURVE_SERVERKEY) {
        errno = EINVAL;
        return -1;
    }
    return real (socket, option, value, size);
}

int zmq_send (void *socket, const void *data, size_t size, int flags)
{
    int (*real) (void *, const void *, size_t, int) = dlsym (RTLD_NEXT, "zmq_send");
    char *copy = malloc (size + 1);
    memcpy (copy, data, size);
    char *version = broken ("version") ? memmem (copy, size, "22528", 5) : NULL;
    if (version)
        memcpy (version, "22272", 5);
    int sent = real (socket, copy, size, flags);
    free (copy);
    return sent;
}
