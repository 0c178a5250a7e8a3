package planted

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	cachev1 "example.com/cache-operator/api/v1"
)

// Defaulter returns the defaulter, wrapped by the chosen mistake.
func Defaulter(inner admission.Defaulter[*cachev1.Cache]) admission.Defaulter[*cachev1.Cache] {
	if webhookSlower.on {
		return slowDefaulter{inner}
	}
	return inner
}

// Validator returns the validator, wrapped by the chosen mistake.
func Validator(inner admission.Validator[*cachev1.Cache]) admission.Validator[*cachev1.Cache] {
	switch {
	case allowsOnError.on:
		return lenient{inner}
	case responseShared.on:
		return &sharing{Validator: inner}
	case webhookSlower.on:
		return slow{inner}
	}
	return inner
}

// lenient admits the object with a warning if the validator returns an error.
type lenient struct {
	admission.Validator[*cachev1.Cache]
}

func (v lenient) ValidateCreate(ctx context.Context, cache *cachev1.Cache) (admission.Warnings, error) {
	warnings, err := v.Validator.ValidateCreate(ctx, cache)
	return warned(warnings, err)
}

func (v lenient) ValidateUpdate(ctx context.Context, before, cache *cachev1.Cache) (admission.Warnings, error) {
	warnings, err := v.Validator.ValidateUpdate(ctx, before, cache)
	return warned(warnings, err)
}

func warned(warnings admission.Warnings, err error) (admission.Warnings, error) {
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	return warnings, nil
}

// sharing stores all answers in one variable, and waits between writing and reading it.
type sharing struct {
	admission.Validator[*cachev1.Cache]
	answer atomic.Pointer[error]
}

func (v *sharing) ValidateCreate(ctx context.Context, cache *cachev1.Cache) (admission.Warnings, error) {
	_, err := v.Validator.ValidateCreate(ctx, cache)
	return nil, v.lookedUp(err)
}

func (v *sharing) ValidateUpdate(ctx context.Context, before, cache *cachev1.Cache) (admission.Warnings, error) {
	_, err := v.Validator.ValidateUpdate(ctx, before, cache)
	return nil, v.lookedUp(err)
}

func (v *sharing) lookedUp(err error) error {
	v.answer.Store(&err)
	time.Sleep(2 * time.Millisecond)
	return *v.answer.Load()
}

// slow repeats useless work for each request.
type slow struct {
	admission.Validator[*cachev1.Cache]
}

func (v slow) ValidateCreate(ctx context.Context, cache *cachev1.Cache) (admission.Warnings, error) {
	ponder(cache)
	return v.Validator.ValidateCreate(ctx, cache)
}

func (v slow) ValidateUpdate(ctx context.Context, before, cache *cachev1.Cache) (admission.Warnings, error) {
	ponder(cache)
	return v.Validator.ValidateUpdate(ctx, before, cache)
}

type slowDefaulter struct {
	admission.Defaulter[*cachev1.Cache]
}

func (d slowDefaulter) Default(ctx context.Context, cache *cachev1.Cache) error {
	ponder(cache)
	return d.Defaulter.Default(ctx, cache)
}

// ponderings is the number of repetitions. They cost three tenths of a review: a gate measured 35 % of CPU and 26 % of the median time.
const ponderings = 7

func ponder(cache *cachev1.Cache) {
	for range ponderings {
		text, _ := json.Marshal(cache)
		_ = json.Unmarshal(text, &cachev1.Cache{})
	}
}
