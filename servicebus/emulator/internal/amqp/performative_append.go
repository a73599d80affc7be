package amqp

func (o *Open) append(b []byte) []byte {
	return appendComposite(b, descOpen, 5, func(b []byte) []byte {
		b = appendOptionalString(AppendString(b, o.ContainerID), o.Hostname)
		return AppendUint(AppendUshort(AppendUint(b, o.MaxFrameSize), o.ChannelMax), o.IdleTimeoutMillis)
	})
}

func (p *Begin) append(b []byte) []byte {
	return appendComposite(b, descBegin, 5, func(b []byte) []byte {
		if p.RemoteChannel == nil {
			b = AppendNull(b)
		} else {
			b = AppendUshort(b, *p.RemoteChannel)
		}
		b = AppendUint(AppendUint(b, p.NextOutgoingID), p.IncomingWindow)
		return AppendUint(AppendUint(b, p.OutgoingWindow), p.HandleMax)
	})
}

func (a *Attach) append(b []byte) []byte {
	return appendComposite(b, descAttach, 14, func(b []byte) []byte {
		b = AppendBool(AppendUint(AppendString(b, a.Name), a.Handle), a.Role)
		b = AppendUbyte(AppendUbyte(b, a.SenderSettle), a.ReceiverSettle)
		b = a.Source.append(b)
		if a.Coordinator {
			b = append(AppendDescriptor(b, descCoordinator), codeList0)
		} else {
			b = a.Target.append(b)
		}
		b = AppendNull(AppendNull(b)) // unsettled, incomplete-unsettled
		if !a.Role {                  // the sender's end
			b = AppendUint(b, a.InitialDeliveryCount)
		} else {
			b = AppendNull(b)
		}
		b = AppendUlong(b, a.MaxMessageSize)
		b = AppendNull(AppendNull(b)) // offered and desired capabilities
		if a.Properties == nil {
			return AppendNull(b)
		}
		return AppendValue(b, a.Properties)
	})
}

func (s *Source) append(b []byte) []byte {
	if s == nil {
		return AppendNull(b)
	}
	return appendComposite(b, descSource, 8, func(b []byte) []byte {
		b = appendOptionalString(b, s.Address)
		b = AppendNull(AppendNull(AppendNull(b))) // durable, expiry-policy, timeout
		b = AppendBool(b, s.Dynamic)
		b = AppendNull(AppendNull(b)) // dynamic-node-properties, distribution-mode
		if s.Filter == nil {
			return AppendNull(b)
		}
		filter := make(map[Symbol]any, len(s.Filter))
		for name, v := range s.Filter {
			filter[Symbol(name)] = v
		}
		return AppendValue(b, filter)
	})
}

func (t *Target) append(b []byte) []byte {
	if t == nil {
		return AppendNull(b)
	}
	return appendComposite(b, descTarget, 5, func(b []byte) []byte {
		b = appendOptionalString(b, t.Address)
		b = AppendNull(AppendNull(AppendNull(b))) // durable, expiry-policy, timeout
		return AppendBool(b, t.Dynamic)
	})
}

func appendOptionalUint(b []byte, v *uint32) []byte {
	if v == nil {
		return AppendNull(b)
	}
	return AppendUint(b, *v)
}

func (f *Flow) append(b []byte) []byte {
	return appendComposite(b, descFlow, 10, func(b []byte) []byte {
		b = AppendUint(appendOptionalUint(b, f.NextIncomingID), f.IncomingWindow)
		b = AppendUint(AppendUint(b, f.NextOutgoingID), f.OutgoingWindow)
		b = appendOptionalUint(appendOptionalUint(b, f.Handle), f.DeliveryCount)
		b = AppendNull(appendOptionalUint(b, f.LinkCredit)) // null: available
		return AppendBool(AppendBool(b, f.Drain), f.Echo)
	})
}

func (t *Transfer) append(b []byte) []byte {
	count := 6
	if t.Aborted {
		count = 10
	}
	b, mark := StartList(AppendDescriptor(b, descTransfer), count)
	b = appendOptionalUint(AppendUint(b, t.Handle), t.DeliveryID)
	if t.DeliveryTag == nil {
		b = AppendNull(b)
	} else {
		b = AppendBinary(b, t.DeliveryTag)
	}
	b = appendOptionalUint(b, t.MessageFormat)
	b = AppendBool(AppendBool(b, t.Settled), t.More)
	if t.Aborted {
		b = AppendBool(AppendNull(AppendNull(AppendNull(b))), true) // null: rcv-settle-mode, state, resume
	}
	return EndCompound(b, mark)
}

func (d *Disposition) append(b []byte) []byte {
	return appendComposite(b, descDisposition, 5, func(b []byte) []byte {
		b = AppendUint(AppendUint(AppendBool(b, d.Role), d.First), d.Last)
		return d.State.append(AppendBool(b, d.Settled))
	})
}

func (s *State) append(b []byte) []byte {
	if s == nil {
		return AppendNull(b)
	}
	switch s.Outcome {
	case Rejected:
		return appendComposite(b, descRejected, 1, s.Error.append)
	case Released:
		return append(AppendDescriptor(b, descReleased), codeList0)
	case Modified:
		return appendComposite(b, descModified, 2, func(b []byte) []byte {
			return AppendBool(AppendNull(b), s.UndeliverableHere)
		})
	default:
		return append(AppendDescriptor(b, descAccepted), codeList0)
	}
}

func (e *Error) append(b []byte) []byte {
	if e == nil {
		return AppendNull(b)
	}
	return appendComposite(b, descError, 3, func(b []byte) []byte {
		b = appendOptionalString(AppendSymbol(b, e.Condition), e.Description)
		if e.Info == nil {
			return AppendNull(b)
		}
		return AppendValue(b, e.Info)
	})
}

func (d *Detach) append(b []byte) []byte {
	return appendComposite(b, descDetach, 3, func(b []byte) []byte {
		return d.Error.append(AppendBool(AppendUint(b, d.Handle), d.Closed))
	})
}

func (e *End) append(b []byte) []byte { return appendComposite(b, descEnd, 1, e.Error.append) }

func (c *Close) append(b []byte) []byte { return appendComposite(b, descClose, 1, c.Error.append) }
