/// Page stealing whose pages are larger the more is live.
#pragma once

#include "tightship/resource/virtual/stealing_resource.hpp"

namespace tightship::resource {

/// Serves requests from one of several `StealingVirtualResource`s, its stages: the one whose limit
/// holds what is live. Small pages waste less of a small total, large ones are moved faster. Once a
/// total is outgrown its stage only takes blocks back, and what it has free goes to the device, so
/// that later stages use it. A total that shrinks keeps the pages that it has.
class GrowingVirtualResource final : public VirtualResource {
  public:
    /// `settings.page_bytes` is not used.
    GrowingVirtualResource(std::shared_ptr<PagedDevice> device,
                           StealingVirtualResource::Settings settings);

    void *allocate_on(size_t size_bytes, size_t alignment, const StreamPointer &stream) override;
    Freed deallocate_on(void *pointer, size_t size_bytes, size_t alignment,
                        const StreamPointer &stream) override;
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override;
    bool is_shared() const override { return device()->is_shared(); }
    Statistics statistics() const override;
    const std::shared_ptr<PagedDevice> &device() const override { return stages_[0]->device(); }
    VirtualStatistics virtual_statistics() const override;
    std::vector<ListedBlock> blocks() const override;
    void record_events(size_t count) override;
    std::vector<Event> events() const override;
    size_t available_bytes() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    size_t trim() override;

    /// Pages of a stage, and the live bytes up to which requests go to it.
    struct Stage {
        size_t page_bytes, live_bytes;
    };
    /// A page is at most about a 1500th of what is live, as parts of pages between blocks add up.
    static constexpr std::array<Stage, 8> kStages{{{size_t{4} << 10, size_t{16} << 20},
                                                   {size_t{16} << 10, size_t{96} << 20},
                                                   {size_t{64} << 10, size_t{192} << 20},
                                                   {size_t{128} << 10, size_t{384} << 20},
                                                   {size_t{256} << 10, size_t{768} << 20},
                                                   {size_t{512} << 10, size_t{1536} << 20},
                                                   {size_t{1} << 20, size_t{3} << 30},
                                                   {size_t{2} << 20, SIZE_MAX}}};

  private:
    size_t live_bytes() const;
    size_t stage_for(size_t size_bytes);
    size_t trim_before(size_t stage);
    void trim_outgrown(size_t stage);

    std::shared_ptr<PhysicalTotal> total_;
    std::vector<std::unique_ptr<StealingVirtualResource>> stages_;
    std::atomic<size_t> stage_{0}; ///< that serves requests
    std::atomic<size_t> peak_live_bytes_{0};
    std::atomic<size_t> event_count_{0}; ///< events to keep
};

} // namespace tightship::resource
