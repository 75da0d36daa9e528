#include "bind.hpp"
#include "running.hpp"
#include "traverse.hpp"

#include "tightship/resource/committed_range.hpp"
#include "tightship/run/arena_claim.hpp"
#include "tightship/run/session_state.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <string_view>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

const StopFlag kNeverStopped = false;

/// Returns the only number of an array of one row at most, of 32 or 64 bits; -1 for anything else.
int64_t number_of(PyObject *array) {
    Py_buffer view;
    if (PyObject_CheckBuffer(array) == 0)
        return -1;
    if (PyObject_GetBuffer(array, &view, PyBUF_ND | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return -1;
    }
    const std::string_view format = view.format == nullptr ? "" : view.format;
    const bool is_one = (view.ndim == 1 || view.ndim == 2) && view.len == view.itemsize;
    int64_t found = -1;
    if (is_one && view.itemsize == 8 && (format == "l" || format == "q"))
        found = *static_cast<const int64_t *>(view.buf);
    else if (is_one && view.itemsize == 4 && format == "i")
        found = *static_cast<const int32_t *>(view.buf);
    PyBuffer_Release(&view);
    return found;
}

/// Returns the number in a list, or an array, of one integer that is not negative and within
/// `is_wide`'s type; -1 for anything else.
int64_t only_token(nb::handle tokens, bool is_wide) {
    int64_t found = -1;
    if (!PyList_CheckExact(tokens.ptr())) {
        found = number_of(tokens.ptr());
    } else if (PyList_Size(tokens.ptr()) == 1) {
        PyObject *token = PyList_GetItem(tokens.ptr(), 0);
        int overflow = 0;
        if (PyLong_CheckExact(token))
            found = PyLong_AsLongLongAndOverflow(token, &overflow);
        if (overflow != 0)
            return -1;
    }
    return found >= 0 && (is_wide || found <= INT32_MAX) ? found : -1;
}

/// Returns the flag of an argument, of which None never stops; null for anything else.
const StopFlag *flag_of(nb::handle stop) {
    if (stop.is_none())
        return &kNeverStopped;
    const StopFlag *found = nullptr;
    return nb::try_cast(stop, found) ? found : nullptr;
}

/// Arena that a program for one token has run in. Its parts are kept alive here.
struct TokenArena {
    nb::object context, range, claim;
    size_t needed_bytes;

    /// Takes the memory, if no run has it and the pool has not given it back.
    bool take() const {
        ArenaClaim &taken = *nb::inst_ptr<ArenaClaim>(claim);
        if (!taken.take())
            return false;
        if (nb::inst_ptr<resource::CommittedRange>(range)->size_bytes() >= needed_bytes)
            return true;
        taken.give();
        return false;
    }
};

/// Gives an arena's memory back, and notes that a run has used it.
struct ArenaUse {
    const TokenArena &arena;
    explicit ArenaUse(const TokenArena &arena) : arena(arena) {}
    ArenaUse(const ArenaUse &) = delete;
    ArenaUse &operator=(const ArenaUse &) = delete;
    ~ArenaUse() {
        ArenaClaim &claim = *nb::inst_ptr<ArenaClaim>(arena.claim);
        claim.used_ns = std::chrono::nanoseconds(Watch::Clock::now().time_since_epoch()).count();
        claim.used_bytes = arena.needed_bytes;
        claim.give();
    }
};

/// Steps of one token by a program all of whose steps are native, in arenas that are free.
class TokenSteps {
  public:
    TokenSteps(size_t count, uint32_t logits, nb::object make)
        : count_(count), logits_(logits), make_(std::move(make)) {}

    void add(const nb::object &context, const nb::object &range, const nb::object &claim,
             size_t needed_bytes) {
        for (const TokenArena &arena : arenas_)
            if (arena.context.is(context))
                return;
        std::erase_if(arenas_, [](const TokenArena &arena) {
            return nb::cast<const resource::CommittedRange &>(arena.range).size_bytes() == 0;
        });
        nb::cast<Context &>(context); // throws if it is another object
        nb::cast<resource::CommittedRange &>(range);
        nb::cast<ArenaClaim &>(claim);
        arenas_.push_back({context, range, claim, needed_bytes});
    }

    void clear() { arenas_.clear(); }

    int visit_objects(visitproc visit, void *arg) const {
        Py_VISIT(make_.ptr());
        for (const TokenArena &arena : arenas_) {
            Py_VISIT(arena.context.ptr());
            Py_VISIT(arena.range.ptr());
            Py_VISIT(arena.claim.ptr());
        }
        return 0;
    }

    size_t arena_count() const { return arenas_.size(); }

    nb::object step(SessionState &state, nb::handle tokens, nb::handle stop) {
        const int64_t token = only_token(tokens, state.operands.is_wide);
        const StopFlag *flag = flag_of(stop);
        if (token < 0 || flag == nullptr || state.length >= state.ready ||
            !state.is_of_this_process() || !state.try_use())
            return nb::none();
        for (const TokenArena &each : arenas_)
            if (each.take()) {
                const TokenArena arena = each; // the list may change during the run
                const ArenaUse use(arena);
                return run(state, token, *flag, *nb::inst_ptr<Context>(arena.context));
            }
        state.end();
        return nb::none();
    }

  private:
    nb::object run(SessionState &state, int64_t token, const StopFlag &stop, Context &context) {
        ++state.uses;
        const int64_t ready = std::exchange(state.ready, 0); // none, should this fail
        if (state.keeps_tokens)
            state.written.reserve(state.written.size() + 1);
        const TokenOperands &operands = state.operands;
        context.bind_fixed(*operands.fixed);
        nb::object logits = make_();
        context.bind_external(logits_, first_byte(logits));
        if (operands.is_wide)
            *static_cast<int64_t *>(operands.token) = token;
        else
            *static_cast<int32_t *>(operands.token) = static_cast<int32_t>(token);
        *operands.past = state.length;
        const Outcome outcome = run_steps(context, {0, count_}, stop, std::nullopt);
        if (outcome != Outcome::kDone)
            return nb::str(name_of(outcome));
        if (state.keeps_tokens)
            state.written.push_back(token);
        ++state.length;
        state.ready = ready;
        state.end();
        return logits;
    }

    size_t count_;
    uint32_t logits_;
    nb::object make_;
    std::vector<TokenArena> arenas_;
};

int traverse_token_steps(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *steps = owned_by<TokenSteps>(self);
    return steps != nullptr ? steps->visit_objects(visit, arg) : 0;
}

PyType_Slot token_steps_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_token_steps)},
                                   {0, nullptr}};

void token_steps(nb::module_ &module) {
    nb::class_<TokenSteps>(module, "TokenSteps", nb::type_slots(token_steps_slots),
                           "Steps of one token in one call each, where all is prepared for it.")
        .def(nb::init<size_t, uint32_t, nb::object>(), "count"_a, "logits"_a, "make"_a,
             "Refer to a program.\n\nArgs:\n    count: Native steps of the program, which has no "
             "others.\n    logits: Slot of its only result.\n    make: Returns an array for that.")
        .def("add", &TokenSteps::add, "context"_a, "range"_a, "claim"_a, "needed_bytes"_a,
             "Use an arena from now on, unless it is used already; those whose memory was given "
             "back\nare forgotten.")
        .def("clear", &TokenSteps::clear, "Use no arena any more.")
        .def_prop_ro("arena_count", &TokenSteps::arena_count)
        .def("step", &TokenSteps::step, "state"_a, "tokens"_a.none(), "stop"_a.none(),
             nb::sig("def step(self, state: SessionState, tokens: object, stop: object) -> "
                     "typing.Any"),
             "Append a token, as a list or an array of one, and return its logits.\n\nReturns "
             "None, changing "
             "nothing, if it cannot: the tokens are others, their row or an arena is\nnot ready, "
             "or the session is in use. Returns \"stopped\", or raises what the run raised, with "
             "the\nuse of the session not ended\nand nothing ready.");
}

void session_state(nb::module_ &module) {
    nb::class_<SessionState>(module, "SessionState",
                             "State of a session that each of its steps changes.")
        .def(nb::init<>())
        .def("begin", &SessionState::begin,
             "Begin a use, after which no token is ready; return False if there is one already.")
        .def("end", &SessionState::end, "End a use.")
        .def_prop_ro("is_of_this_process", &SessionState::is_of_this_process)
        .def_rw("length", &SessionState::length, "Tokens that there are.")
        .def_rw("uses", &SessionState::uses, "Uses so far, without those that no caller began.")
        .def_ro("used_ns", &SessionState::used_ns,
                "Time of `time.monotonic_ns` at which the last use ended.")
        .def_ro("ready", &SessionState::ready,
                "Tokens up to which a step of one needs no preparation.")
        .def_rw("keeps_tokens", &SessionState::keeps_tokens,
                "Whether tokens of `TokenSteps` are noted for `take_written`.")
        .def(
            "make_ready",
            [](SessionState &self, int64_t ready, std::shared_ptr<FixedOperands> fixed,
               nb::handle token, nb::handle past, bool is_wide) {
                self.operands = {std::move(fixed), first_byte(token), is_wide,
                                 static_cast<int64_t *>(first_byte(past))};
                self.ready = ready;
            },
            "ready"_a, "fixed"_a, "token"_a, "past"_a, "is_wide"_a,
            "Let `TokenSteps` append tokens until the next use begins.\n\nArgs:\n    ready: Tokens "
            "up to which rows of the caches may be written.\n    fixed: Operands but the logits; "
            "their arrays stay until the next use.\n    token: One of these arrays, of the token.\n"
            "    past: Array of the number of tokens before.\n    is_wide: Whether the token has "
            "64 bits, not 32.")
        .def(
            "take_written", [](SessionState &self) { return std::exchange(self.written, {}); },
            "Return the tokens that were noted since the last call.");
}

} // namespace

void session_steps(nb::module_ &module) {
    nb::class_<ArenaClaim>(module, "ArenaClaim", "Use of an arena's memory by one run at a time.")
        .def(nb::init<>())
        .def("take", &ArenaClaim::take, "Return whether nothing else had it.")
        .def("give", &ArenaClaim::give)
        .def_prop_ro("is_taken", &ArenaClaim::is_taken)
        .def_ro("used_ns", &ArenaClaim::used_ns,
                "Time of `time.monotonic_ns` after the last run of `TokenSteps`.")
        .def_ro("used_bytes", &ArenaClaim::used_bytes, "Bytes that this run needed.");
    session_state(module);
    token_steps(module);
}

} // namespace tightship::bind
