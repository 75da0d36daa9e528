#include "tightship/parallel.hpp"

#include "openmp.hpp"

#include <atomic>

namespace tightship {

namespace {

std::atomic<const OpenMp *> shared = nullptr;

void run_shared(const OpenMp &openmp, int tickets, void (*call)(void *data, int ticket),
                void *data) {
    struct Region {
        const OpenMp &openmp;
        int tickets;
        void (*call)(void *, int);
        void *data;
    } region{openmp, tickets, call, data};
    const auto run = [](void *of_region) {
        const auto [openmp, tickets, call, data] = *static_cast<const Region *>(of_region);
        for (int ticket = openmp.thread_num(); ticket < tickets; ticket += openmp.num_threads())
            call(data, ticket);
    };
    openmp.parallel(run, &region, static_cast<unsigned>(tickets), 0);
}

} // namespace

void share_threads(const OpenMp &runtime) {
    static const OpenMp first = runtime;
    shared.store(&first, std::memory_order_release);
}

void run_tickets(int tickets, void (*call)(void *data, int ticket), void *data) {
    if (const OpenMp *openmp = shared.load(std::memory_order_acquire))
        run_shared(*openmp, tickets, call, data);
    else
        tsm_run(tickets, call, data);
}

} // namespace tightship
