/// Locks that are held while the process forks, so that the child finds consistent state.
#pragma once

namespace tightship::resource {

class Forkable {
  public:
    virtual ~Forkable() = default;
    /// Takes the object's locks: no other thread is inside it until `after_fork`.
    virtual void before_fork() = 0;
    virtual void after_fork(bool is_child) = 0;
};

/// Calls `guarded` around every fork. Must be the last member of the guarded object: made when the
/// object is complete, destroyed first. The list of guards has a lock, which only guards and forks
/// take.
class ForkGuard {
  public:
    explicit ForkGuard(Forkable &guarded);
    ~ForkGuard();
    ForkGuard(const ForkGuard &) = delete;
    ForkGuard &operator=(const ForkGuard &) = delete;

  private:
    Forkable &guarded_;
};

} // namespace tightship::resource
