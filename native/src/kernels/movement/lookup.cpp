#include "tightship/kernels/movement/generate.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/kernels/spans.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

/// Consecutive equal entries of the innermost table.
struct Run {
    int64_t first, count, offset;
    enum { kFill, kTogether, kRepeat } how;
};

constexpr int64_t kShortRun = 4; ///< entries below which a run costs more than it saves

std::vector<Run> runs_of(const Dims &table, int64_t unit_bytes) {
    std::vector<Run> runs;
    for (int64_t place = 0; place < static_cast<int64_t>(table.size()); ++place) {
        const int64_t offset = table[place];
        if (!runs.empty()) {
            Run &last = runs.back();
            const bool fills = last.how == Run::kFill && offset < 0;
            const bool repeats =
                offset == last.offset && (last.how == Run::kRepeat || last.count == 1);
            const bool follows =
                last.how == Run::kTogether && offset == last.offset + last.count * unit_bytes;
            if (fills || (offset >= 0 && last.how != Run::kFill && (repeats || follows))) {
                if (repeats && !follows && !fills)
                    last.how = Run::kRepeat;
                ++last.count;
                continue;
            }
        }
        runs.push_back({place, 1, offset, offset < 0 ? Run::kFill : Run::kTogether});
    }
    return runs;
}

/// Returns how often each element of a row is repeated, if all are, in their order; else 0.
int64_t repeats_of(const Dims &table, int64_t item_bytes) {
    int64_t repeats = 0;
    while (repeats < static_cast<int64_t>(table.size()) && table[repeats] == table[0])
        ++repeats;
    for (size_t place = 0; place < table.size(); ++place)
        if (table[place] != table[0] + static_cast<int64_t>(place) / repeats * item_bytes)
            return 0;
    return repeats;
}

class Lookup : public Kernel {
  public:
    Lookup(int64_t item_bytes, int64_t items, bool has_fill, std::vector<Dims> tables)
        : item_bytes_(item_bytes), items_(items), has_fill_(has_fill), last_(tables.back()),
          runs_(runs_of(last_, counted({item_bytes, items}))) {
        find_farthest(tables);
        tables.pop_back();
        tables_ = std::move(tables);
        for (const Dims &table : tables_)
            row_count_ = counted({row_count_, static_cast<int64_t>(table.size())});
        if (items == 1 && !last_.empty() && last_[0] >= 0)
            repeats_ = repeats_of(last_, item_bytes);
        is_loose_ =
            static_cast<int64_t>(runs_.size()) * kShortRun > static_cast<int64_t>(last_.size());
    }

    void run(std::span<char *const> operands, int threads) const override {
        const Wide zero{};
        const char *fill = has_fill_ ? operands[1] : reinterpret_cast<const char *>(&zero);
        char *target = operands[has_fill_ ? 2 : 1];
        const int64_t row_bytes = static_cast<int64_t>(last_.size()) * items_ * item_bytes_;
        const int64_t grain = (int64_t{1} << 16) / std::max<int64_t>(row_bytes, 1);
        with_item(item_bytes_, [&](auto item) {
            using Item = decltype(item);
            const Item filling = load<Item>(fill);
            parallel_for(threads, row_count_, grain, [&](int64_t begin, int64_t end) {
                int64_t before = kOutside - 1;
                for (int64_t row = begin; row < end; ++row) {
                    char *to = target + row * row_bytes;
                    const int64_t offset = offset_of(row);
                    if (offset == before)
                        std::memcpy(to, to - row_bytes, static_cast<size_t>(row_bytes));
                    else if (offset == kOutside)
                        fill_span(filling, to, row_bytes / item_bytes_);
                    else
                        write_row(operands[0] + offset, filling, to);
                    before = offset;
                }
            });
        });
    }

    std::vector<Reach> reach() const override {
        const int64_t unit = counted({items_, item_bytes_});
        const Reach target = dense(counted({row_count_, static_cast<int64_t>(last_.size())}), unit);
        if (has_fill_)
            return {{0, farthest_}, {0, item_bytes_}, target};
        return {{0, farthest_}, target};
    }

  private:
    static constexpr int64_t kOutside = -1;

    /// Finds the end of the bytes that entries can point to; zero if one table only fills.
    void find_farthest(const std::vector<Dims> &tables) {
        int64_t farthest = counted({item_bytes_, items_});
        for (const Dims &table : tables) {
            const int64_t most = table.empty() ? -1 : *std::max_element(table.begin(), table.end());
            if (most < 0)
                return;
            require(most < kReachMax, "a kernel looks up impossible places");
            farthest += most;
        }
        require(farthest < kReachMax, "a kernel looks up impossible places");
        farthest_ = farthest;
    }

    /// Returns the offset of a row in the source; kOutside if it is filled whole.
    int64_t offset_of(int64_t row) const {
        int64_t offset = 0;
        for (size_t axis = tables_.size(); axis-- > 0;) {
            const auto length = static_cast<int64_t>(tables_[axis].size());
            const int64_t entry = tables_[axis][row % length];
            if (entry < 0)
                return kOutside;
            offset += entry;
            row /= length;
        }
        return offset;
    }

    template <class Item> void write_row(const char *from, const Item &filling, char *to) const {
        if (repeats_ == 2 && last_.size() % 2 == 0)
            return write_twice<Item>(from + last_[0], to);
        if (is_loose_ && items_ == 1)
            return write_entries(from, filling, to);
        const int64_t unit_bytes = items_ * item_bytes_;
        for (const Run &run : runs_) {
            char *start = to + run.first * unit_bytes;
            if (run.how == Run::kFill)
                fill_span(filling, start, run.count * items_);
            else if (run.how == Run::kTogether)
                copy_bytes(from + run.offset, start, run.count * unit_bytes);
            else if (items_ == 1)
                fill_span(load<Item>(from + run.offset), start, run.count);
            else
                for (int64_t index = 0; index < run.count; ++index)
                    copy_bytes(from + run.offset, start + index * unit_bytes, unit_bytes);
        }
    }

    template <class Item> void write_twice(const char *from, char *to) const {
        constexpr int64_t item = sizeof(Item);
        const auto pairs = static_cast<int64_t>(last_.size() / 2);
        for (int64_t pair = 0; pair < pairs; ++pair) {
            const Item twice = load<Item>(from + pair * item);
            store(to + 2 * pair * item, twice);
            store(to + (2 * pair + 1) * item, twice);
        }
    }

    template <class Item>
    void write_entries(const char *from, const Item &filling, char *to) const {
        for (const int64_t entry : last_) {
            store(to, entry < 0 ? filling : load<Item>(from + entry));
            to += sizeof(Item);
        }
    }

    int64_t item_bytes_, items_;
    bool has_fill_, is_loose_ = false;
    Dims last_;
    std::vector<Run> runs_;
    std::vector<Dims> tables_;
    int64_t row_count_ = 1, repeats_ = 0, farthest_ = 0;
};

} // namespace

std::shared_ptr<const Kernel> lookup(int64_t item_bytes, int64_t items, bool has_fill,
                                     const std::vector<Dims> &tables) {
    require_item(item_bytes);
    require(!tables.empty() && tables.size() <= kRankMax && items > 0, "a kernel looks up nothing");
    return std::make_shared<Lookup>(item_bytes, items, has_fill, tables);
}

} // namespace tightship::kernels
