#include "tightship/parallel.hpp"

namespace tightship {

void run_tickets(int tickets, void (*call)(void *data, int ticket), void *data) {
    for (int ticket = 0; ticket < tickets; ++ticket)
        call(data, ticket);
}

} // namespace tightship
