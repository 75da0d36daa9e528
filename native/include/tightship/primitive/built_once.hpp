/// Cache of values built once for a key; the least recently used are released first.
///
///   key ── absent: one caller builds it, other callers wait ──> Use, a counted reference
///       ── present ───────────────────────────────────────────> Use
///
/// An entry that is released while a `Use` of it exists lives until the last of them ends.
#pragma once

#include "tightship/resource/fork_guard.hpp"

#include <cassert>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

namespace tightship::primitive {

/// Limits of a cache: number of entries (0 keeps none), and bytes of unused entries.
struct Capacity {
    size_t entries;
    size_t idle_bytes;
};

/// Counters: hits + waits + misses == calls of `obtain`; misses - failures == values built.
struct CacheStatistics {
    uint64_t hits = 0;
    uint64_t waits = 0;     ///< found while another thread was building it
    uint64_t misses = 0;    ///< not found, so built
    uint64_t failures = 0;  ///< misses whose building failed
    uint64_t evictions = 0; ///< released for others, or for a lower capacity
    size_t entries = 0;
    size_t bytes = 0; ///< of all entries
    size_t idle_entries = 0;
    size_t idle_bytes = 0; ///< of unused entries
};

/// Cache of `Value`s, which have `size_bytes()`, constant, and `retire()`, called once when a value
/// is released, perhaps while in use. Every method may be called from any thread.
template <class Key, class Value, class Hash = std::hash<Key>>
class BuiltOnce : private resource::Forkable {
    struct Entry;
    using Entries = std::list<std::shared_ptr<Entry>>; ///< spliced: releasing allocates nothing

    struct Entry {
        explicit Entry(const Key &wanted) : key(wanted) {}
        Key key;
        std::unique_ptr<Value> value;
        std::exception_ptr error;
        size_t users = 0;
        bool is_building = true;
        bool is_cached = false;
        typename Entries::iterator position;
    };

  public:
    using Build = std::function<std::unique_ptr<Value>()>;

    /// Counted reference to an entry. REQUIRES: the cache outlives it.
    class Use {
      public:
        Use() = default;
        Use(Use &&other) noexcept
            : cache_(std::exchange(other.cache_, nullptr)), entry_(std::move(other.entry_)) {}
        Use &operator=(Use &&other) noexcept {
            std::swap(cache_, other.cache_);
            std::swap(entry_, other.entry_);
            return *this;
        }
        ~Use() {
            if (cache_ != nullptr)
                cache_->leave(*entry_);
        }
        Value &operator*() const { return *entry_->value; }
        Value *operator->() const { return entry_->value.get(); }
        const BuiltOnce *cache() const { return cache_; }

      private:
        friend class BuiltOnce;
        Use(BuiltOnce &cache, std::shared_ptr<Entry> entry)
            : cache_(&cache), entry_(std::move(entry)) {}
        BuiltOnce *cache_ = nullptr;
        std::shared_ptr<Entry> entry_;
    };

    explicit BuiltOnce(Capacity capacity) : capacity_(capacity) {}
    BuiltOnce(const BuiltOnce &) = delete;
    BuiltOnce &operator=(const BuiltOnce &) = delete;

    /// Returns the value that `build` made for an equal key, now or earlier. One of several
    /// concurrent callers builds it; an error of `build` is thrown to all, and nothing is kept.
    Use obtain(const Key &key, const Build &build) {
        std::unique_lock lock(mutex_);
        const auto found = by_key_.find(&key);
        if (found != by_key_.end())
            return joined(found->second, lock);
        const auto entry = std::make_shared<Entry>(key);
        Entries made{entry}, gone;
        if (capacity_.entries > 0)
            by_key_.emplace(&entry->key, entry);
        ++statistics_.misses;
        lock.unlock();
        try {
            entry->value = build();
        } catch (...) {
            lock.lock();
            ++statistics_.failures;
            entry->error = std::current_exception();
            settle(entry);
            throw;
        }
        lock.lock();
        keep(made, gone);
        lock.unlock();
        retire(gone);
        return Use(*this, entry);
    }

    Capacity capacity() const {
        const std::lock_guard lock(mutex_);
        return capacity_;
    }

    /// Sets the capacity; entries beyond it are released at once.
    void set_capacity(Capacity capacity) {
        Entries gone;
        {
            const std::lock_guard lock(mutex_);
            capacity_ = capacity;
            shrink(capacity_.idle_bytes, gone);
        }
        retire(gone);
    }

    /// Releases unused entries; returns their bytes.
    size_t release_idle() {
        Entries gone;
        size_t released = 0;
        {
            const std::lock_guard lock(mutex_);
            released = statistics_.idle_bytes;
            shrink(0, gone);
        }
        retire(gone);
        return released;
    }

    CacheStatistics statistics() const {
        const std::lock_guard lock(mutex_);
        return statistics_;
    }

  private:
    struct HashOfKey {
        size_t operator()(const Key *key) const { return Hash()(*key); }
    };
    struct EqualKeys {
        bool operator()(const Key *left, const Key *right) const { return *left == *right; }
    };

    /// Returns a reference to an entry that exists or is being built.
    Use joined(std::shared_ptr<Entry> entry, std::unique_lock<std::mutex> &lock) {
        if (entry->is_building) {
            ++statistics_.waits;
            built_.wait(lock, [&] { return !entry->is_building; });
            if (entry->error)
                std::rethrow_exception(entry->error);
        } else {
            ++statistics_.hits;
        }
        if (entry->is_cached) {
            if (entry->users == 0)
                count_idle(*entry, -1);
            recent_.splice(recent_.begin(), recent_, entry->position);
        }
        ++entry->users;
        return Use(*this, std::move(entry));
    }

    /// Adds a value that was built, unless the capacity has become 0 meanwhile.
    void keep(Entries &made, Entries &gone) {
        const std::shared_ptr<Entry> entry = made.front();
        entry->users = 1;
        const auto listed = by_key_.find(&entry->key);
        if (capacity_.entries == 0 || listed == by_key_.end() || listed->second != entry) {
            settle(entry);
            return;
        }
        recent_.splice(recent_.begin(), made);
        entry->position = recent_.begin();
        entry->is_cached = true;
        entry->is_building = false;
        ++statistics_.entries;
        statistics_.bytes += entry->value->size_bytes();
        shrink(capacity_.idle_bytes, gone);
        built_.notify_all();
    }

    /// Ends the building of an entry that will not be kept.
    void settle(const std::shared_ptr<Entry> &entry) {
        const auto listed = by_key_.find(&entry->key);
        if (listed != by_key_.end() && listed->second == entry)
            by_key_.erase(listed);
        entry->is_building = false;
        built_.notify_all();
    }

    void leave(Entry &entry) {
        Entries gone;
        {
            const std::lock_guard lock(mutex_);
            if (--entry.users > 0 || !entry.is_cached)
                return;
            count_idle(entry, 1);
            shrink(capacity_.idle_bytes, gone);
        }
        retire(gone);
    }

    void count_idle(const Entry &entry, int sign) {
        statistics_.idle_entries += static_cast<size_t>(sign);
        statistics_.idle_bytes += static_cast<size_t>(sign) * entry.value->size_bytes();
    }

    void shrink(size_t idle_bytes, Entries &gone) {
        while (recent_.size() > capacity_.entries)
            evict(std::prev(recent_.end()), gone);
        for (auto last = recent_.end(); statistics_.idle_bytes > idle_bytes;) {
            assert(last != recent_.begin());
            const auto each = std::prev(last);
            if ((*each)->users == 0)
                evict(each, gone);
            else
                last = each;
        }
    }

    void evict(typename Entries::iterator position, Entries &gone) {
        Entry &entry = **position;
        if (entry.users == 0)
            count_idle(entry, -1);
        entry.is_cached = false;
        --statistics_.entries;
        statistics_.bytes -= entry.value->size_bytes();
        ++statistics_.evictions;
        by_key_.erase(&entry.key);
        gone.splice(gone.end(), recent_, position);
    }

    /// Called without a lock, because values give memory back to resources that may run any code.
    static void retire(const Entries &gone) {
        for (const auto &entry : gone)
            entry->value->retire();
    }

    void before_fork() final { mutex_.lock(); }
    /// Drops entries under construction: a child lacks the threads that built or awaited them.
    void after_fork(bool is_child) final {
        if (is_child) {
            new (&built_) std::condition_variable;
            std::erase_if(by_key_, [](const auto &each) { return each.second->is_building; });
        }
        mutex_.unlock();
    }

    mutable std::mutex mutex_;
    std::condition_variable built_;
    Capacity capacity_;
    CacheStatistics statistics_;
    Entries recent_; ///< cached entries, most recently used first
    std::unordered_map<const Key *, std::shared_ptr<Entry>, HashOfKey, EqualKeys> by_key_;
    resource::ForkGuard guard_{*this};
};

} // namespace tightship::primitive
