/// What must be quiet when the process forks, so that the child finds it whole.
#pragma once

namespace tightship::resource {

class Forkable {
  public:
    virtual ~Forkable() = default;
    /// Takes its locks: no other thread is within it until `after_fork`.
    virtual void before_fork() = 0;
    virtual void after_fork(bool is_child) = 0;
};

/// Has `guarded` told of every fork. To be its last member: made when it is whole, gone first.
/// The list of guards has a lock, taken here and by forks only.
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
