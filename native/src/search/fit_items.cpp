#include "tightship/search/fit_items.hpp"

#include "tightship/search/item_descent.hpp"
#include "tightship/search/item_instance.hpp"
#include "tightship/search/race.hpp"

namespace tightship::search {

ItemAnswer fit_items(const packing::Items &items, const packing::Banks &banks,
                     const BankCosts &costs, const ItemLimits &item_limits, const Limits &limits) {
    ItemAnswer answer;
    const ItemInstance instance = instance_of(items, banks, costs, item_limits);
    if (!instance.fits)
        return answer;
    if (instance.count() == 0) {
        answer.found.verdict = Verdict::fits;
        return answer;
    }
    answer.found = Race<ItemInstance, ItemDescent>(instance, limits).run();
    Answer &found = answer.found;
    std::erase_if(found.conflict, [&](std::int64_t item) { return item >= instance.items; });
    if (found.verdict != Verdict::fits)
        return answer;
    found.offsets.resize(instance.items);
    for (int item = 0; item < instance.items; ++item) {
        const auto &bank = instance.banks[instance.bank_at(item, found.offsets[item])];
        found.offsets[item] -= bank.floor;
        answer.banks.push_back(bank.index);
    }
    return answer;
}

} // namespace tightship::search
