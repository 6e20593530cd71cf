/* A driver library in the manner of PSM2's: messages queue in user space, and each is handed to the device by
 * one writev. 0 or EINTR says that the device has no room: the message stays first and is tried again by the
 * next poll. Anything else that is not the whole message is an error. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct message {
    struct message *next;
    unsigned number;
    unsigned char body[28];
};

static struct message *first, **last = &first;
static unsigned queued, issued, retries;

int driver_open(const char *path) { return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC); }

int driver_close(int device) { return close(device); }

unsigned driver_issued(void) { return issued; }

unsigned driver_retries(void) { return retries; }

/* Hands over what the device takes; the number of messages that are left, or -1. */
int driver_poll(int device) {
    while (first) {
        struct message *message = first;
        struct iovec pieces[2] = {{&message->number, sizeof message->number},
                                  {message->body, sizeof message->body}};
        ssize_t length = writev(device, pieces, 2);
        if (length == 0 || (length < 0 && errno == EINTR)) {
            retries++;
            return (int)queued;
        }
        if (length != (ssize_t)(sizeof message->number + sizeof message->body))
            return -1;
        first = message->next;
        if (!first)
            last = &first;
        free(message);
        queued--;
        issued++;
    }
    return 0;
}

int driver_send(int device, unsigned number) {
    struct message *message = calloc(1, sizeof *message);
    message->number = number;
    memset(message->body, (int)(number % 251), sizeof message->body);
    *last = message;
    last = &message->next;
    queued++;
    return driver_poll(device);
}
